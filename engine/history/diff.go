package history

import (
	"context"
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/store"
)

// Moment is a context as of a seq, or with 0 as of now.
type Moment struct {
	Context string
	At      int64
}

// Change is a path at which two moments differ. Old or new is left out where
// there is no value.
type Change struct {
	Path     string
	Instance string
	Old      store.Optional
	New      store.Optional
}

// Diff lists the differences between two moments: the paths whose values are not equal, as deep as
// both sides have objects, sorted. Arrays are compared whole.
func Diff(ctx context.Context, log store.Reader, from, to Moment) ([]Change, error) {
	// Both are read at the paths of either: an instance sees the global value where it has none.
	kinds := map[store.KindOf]bool{}
	for _, of := range []Moment{from, to} {
		if _, err := log.Head(ctx, of.Context); err != nil {
			return nil, err
		}
		held, err := log.Kinds(ctx, of.Context)
		if err != nil {
			return nil, err
		}
		for _, k := range held {
			there, err := holds(ctx, log, of, k)
			if err != nil {
				return nil, err
			}
			if there {
				kinds[k] = true
			}
		}
	}
	old, err := valuesAt(ctx, log, from, kinds)
	if err != nil {
		return nil, err
	}
	now, err := valuesAt(ctx, log, to, kinds)
	if err != nil {
		return nil, err
	}
	return changes(old, now), nil
}

// holds reports whether a kind that has data now had data at a moment.
func holds(ctx context.Context, log store.Reader, m Moment, k store.KindOf) (bool, error) {
	if m.At == 0 {
		return true, nil
	}
	for _, err := range log.Touching(ctx, store.Query{Context: m.Context, Path: store.KindPath(k.Kind), Instance: k.Instance, At: m.At}) {
		return err == nil, err
	}
	return false, nil
}

func changes(old, now map[store.KindOf]any) (all []Change) {
	for key := range old {
		if _, ok := now[key]; !ok {
			all = differ(all, store.KindPath(key.Kind), key.Instance, old[key], nil, true, false)
		}
	}
	for key, v := range now {
		was, ok := old[key]
		all = differ(all, store.KindPath(key.Kind), key.Instance, was, v, ok, true)
	}
	slices.SortFunc(all, func(a, b Change) int {
		return strings.Compare(a.Path+"\x00"+a.Instance, b.Path+"\x00"+b.Instance)
	})
	return all
}

// valuesAt gives the values of kinds at a moment.
func valuesAt(ctx context.Context, log store.Reader, m Moment, kinds map[store.KindOf]bool) (map[store.KindOf]any, error) {
	values := map[store.KindOf]any{}
	resolver := store.Resolver{Log: log, Context: m.Context, At: m.At}
	for key := range kinds {
		resolved, err := resolver.Resolve(ctx, store.KindPath(key.Kind), key.Instance)
		if err != nil {
			return nil, err
		}
		if resolved.Exists {
			values[key] = resolved.Value
		}
	}
	return values, nil
}

func differ(all []Change, path store.Path, instance string, old, now any, hasOld, hasNew bool) []Change {
	x, isOld := old.(map[string]any)
	y, isNew := now.(map[string]any)
	if !(isOld || !hasOld) || !(isNew || !hasNew) || len(x)+len(y) == 0 || isOld && len(x) == 0 && !hasNew || isNew && len(y) == 0 && !hasOld {
		if hasOld == hasNew && jsonvalue.Equal(old, now) {
			return all
		}
		return append(all, Change{path.String(), instance, store.Optional{Value: old, Set: hasOld}, store.Optional{Value: now, Set: hasNew}})
	}
	for key, v := range x {
		next, ok := y[key]
		all = differ(all, path.Child(key), instance, v, next, true, ok)
	}
	for key, v := range y {
		if _, ok := x[key]; !ok {
			all = differ(all, path.Child(key), instance, nil, v, false, true)
		}
	}
	return all
}

// MarshalJSON leaves out a missing value, and keeps null.
func (c Change) MarshalJSON() ([]byte, error) {
	object := map[string]any{"path": c.Path}
	if c.Instance != "" {
		object["instance"] = c.Instance
	}
	if c.Old.Set {
		object["old"] = c.Old.Value
	}
	if c.New.Set {
		object["new"] = c.New.Value
	}
	return store.EncodeJSON(object), nil
}
