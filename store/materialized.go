package store

import (
	"context"
	"maps"
	"slices"
)

// spot is a path, for an instance or for none.
type spot struct {
	path     Path
	instance string
}

// materialized is a value that the view keeps.
type materialized struct {
	seq   int64 // the newest message that the value takes in
	value any   // shared with no message
}

// minMaterialized is the number of messages from which on a value that is made of them is kept.
const minMaterialized = 32

// Value returns the value that a path has for an instance, nil for none. It is [Resolver.Resolve]
// for a caller that asks again and again while the value grows: over a view as it is now, a call
// costs as much as the messages since the last one, and its value is valid until the view changes.
func (r Resolver) Value(ctx context.Context, path Path, instance string) (any, error) {
	if view := r.currentView(); view != nil {
		return view.materialize(ctx, path, instance)
	}
	resolved, err := r.Resolve(ctx, path, instance)
	return resolved.Value, err
}

// currentView is the view that the resolver reads as of now; nil if it reads anything else.
func (r Resolver) currentView() *View {
	if view, ok := r.Log.(*View); ok && r.At == 0 {
		return view
	}
	return nil
}

// materialize is [Resolver.Value] over the view.
func (v *View) materialize(ctx context.Context, path Path, instance string) (any, error) {
	at := spot{path, instance}
	s := v.materialized[at]
	if s != nil && v.catchUp(s, at) {
		return s.value, nil
	}
	delete(v.materialized, at)
	anchor, err := v.Resolver().anchor(ctx, path, instance)
	if err != nil {
		return nil, err
	}
	if anchor != path {
		whole, err := v.materialize(ctx, anchor, instance)
		value, _ := dig(whole, anchor.below(path))
		return value, err
	}
	resolved, err := v.Resolver().Resolve(ctx, path, instance)
	if err != nil || len(resolved.From) < minMaterialized || path.beforeIndex() != path {
		return resolved.Value, err
	}
	if v.materialized == nil {
		v.materialized = map[spot]*materialized{}
	}
	value := owned(resolved.Value)
	v.materialized[at] = &materialized{v.Seq(), value}
	return value, nil
}

// catchUp joins the newer operations to a value. It reports false if it can't, or if the value was
// replaced: an instance's writes take precedence over global ones, older or newer.
func (v *View) catchUp(s *materialized, at spot) bool {
	var since []step // newest first
	for _, instance := range instancesOf(at.instance) {
		grows := true
		v.touching(Query{Path: at.path, Instance: instance}, func(op Op, _ error) bool {
			if op.Seq <= s.seq {
				return false
			}
			step, bearing := op.seenFrom(at.path)
			if bearing == bears {
				since = append(since, step)
			}
			grows = bearing == passes || bearing == bears && instance == at.instance
			return grows
		})
		if !grows {
			return false
		}
	}
	for _, step := range slices.Backward(since) {
		s.value = applyInPlace(s.value, step.below, step.method, step.value)
	}
	s.seq = v.Seq()
	return true
}

// forgetMaterialized forgets the values that hold something behind a seq.
func (v *View) forgetMaterialized(seq int64) {
	maps.DeleteFunc(v.materialized, func(_ spot, s *materialized) bool { return s.seq > seq })
}

// applyInPlace is apply to a value that is shared with nothing, which it changes.
func applyInPlace(v any, below []string, method Method, value any) any {
	value = owned(value)
	if method == Merge {
		there, _ := dig(v, below)
		method, value = Set, merged(there, value)
	}
	v, _ = apply(mutable(v, below), below, method, value)
	return frozen(v, below)
}

// merged is merge of values that are shared with nothing.
func merged(v, value any) any {
	there, ok := v.(map[string]any)
	object, ok2 := value.(map[string]any)
	if !ok || !ok2 {
		return value
	}
	for key, e := range object {
		if old, ok := there[key]; ok {
			e = merged(old, e)
		}
		there[key] = e
	}
	return there
}

// mutable returns a value in which apply changes the containers on the way to a place, and the one
// there, in place.
func mutable(v any, below []string) any {
	switch c := v.(type) {
	case map[string]any:
		if len(below) > 0 && c[below[0]] != nil {
			c[below[0]] = mutable(c[below[0]], below[1:])
		}
		return ownObject(c)
	case []any:
		if len(below) > 0 {
			if i, ok := index(below[0]); ok && i < len(c) {
				c[i] = mutable(c[i], below[1:])
			}
		}
		return &ownArray{c}
	}
	return v
}

// frozen undoes mutable: it returns plain values on the way to a place, and there.
func frozen(v any, below []string) any {
	switch c := v.(type) {
	case ownObject:
		if len(below) > 0 {
			c[below[0]] = frozen(c[below[0]], below[1:])
		}
		return map[string]any(c)
	case *ownArray:
		if len(below) > 0 {
			if i, ok := index(below[0]); ok && i < len(c.items) {
				c.items[i] = frozen(c.items[i], below[1:])
			}
		}
		return c.items
	case *ownText:
		return c.String()
	}
	return v
}

// owned returns a value that shares nothing with another.
func owned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for key, e := range v {
			c[key] = owned(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = owned(e)
		}
		return c
	}
	return v
}
