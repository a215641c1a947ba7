package history

import (
	"context"
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
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

// Comparison is what differs between two moments.
type Comparison struct {
	Values  []Change
	Calls   []CallChange
	Scripts []ScriptChange
	// TooMany reports that there are too many calls to compare them and their scripts.
	TooMany bool
}

// CallChange is a call that stands otherwise at two moments.
type CallChange struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
	Old  string `json:"old,omitempty"` // its outcome, see [journal.Line.Word]; empty where there is no such call
	New  string `json:"new,omitempty"`
}

// ScriptChange is a script with which calls ran in one version at one moment and in another one at
// the other.
type ScriptChange struct {
	Script        string `json:"script"`
	Old           string `json:"old"` // its SHA-256
	New           string `json:"new"`
	OldGeneration string `json:"old_generation,omitempty"`
	NewGeneration string `json:"new_generation,omitempty"`
}

// MostCompared is the number of calls up to which calls and scripts are compared.
const MostCompared = 20_000

// Compare compares two moments of a log: their values, their calls and the scripts with which those
// ran.
func Compare(ctx context.Context, log store.Reader, from, to Moment) (*Comparison, error) {
	values, err := Diff(ctx, log, from, to)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Values: values}
	before, err := linesAt(ctx, log, from)
	if err != nil {
		return nil, err
	}
	after, err := linesAt(ctx, log, to)
	if err != nil {
		return nil, err
	}
	if c.TooMany = len(before)+len(after) > MostCompared; !c.TooMany {
		c.compareCalls(before, after)
	}
	return c, nil
}

// linesAt returns the calls of a moment.
func linesAt(ctx context.Context, log store.Reader, m Moment) ([]*journal.Line, error) {
	h, err := journal.ReadHistory(ctx, log, m.Context)
	if err != nil {
		return nil, err
	}
	return h.Lines(ctx, m.At)
}

func (c *Comparison) compareCalls(before, after []*journal.Line) {
	earlier, later := map[string]*journal.Line{}, map[string]bool{}
	for _, line := range before {
		earlier[line.Call] = line
	}
	scripts := map[ScriptChange]bool{}
	for _, now := range after {
		later[now.Call] = true
		old, known := earlier[now.Call]
		switch {
		case !known:
			c.Calls = append(c.Calls, CallChange{Call: now.Call, Tool: now.Tool, New: now.Word})
			continue
		case old.Word != now.Word:
			c.Calls = append(c.Calls, CallChange{Call: now.Call, Tool: now.Tool, Old: old.Word, New: now.Word})
		}
		isOther := old.Script == now.Script && old.ScriptSHA256 != now.ScriptSHA256
		isKnown := old.ScriptSHA256 != "" && now.ScriptSHA256 != ""
		change := ScriptChange{Script: now.Script, Old: old.ScriptSHA256, New: now.ScriptSHA256, OldGeneration: old.Generation, NewGeneration: now.Generation}
		if isOther && isKnown && !scripts[change] {
			scripts[change] = true
			c.Scripts = append(c.Scripts, change)
		}
	}
	for _, old := range before {
		if !later[old.Call] {
			c.Calls = append(c.Calls, CallChange{Call: old.Call, Tool: old.Tool, Old: old.Word})
		}
	}
}

// Lines returns the comparison as a list: changes of values, of calls and of scripts.
func (c *Comparison) Lines() (all []any) {
	for _, change := range c.Values {
		all = append(all, change)
	}
	for _, change := range c.Calls {
		all = append(all, change)
	}
	for _, change := range c.Scripts {
		all = append(all, change)
	}
	return all
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
