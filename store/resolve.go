package store

import (
	"context"
	"slices"
)

// Resolver finds the value of a path in a context, as of a seq (protocol §3). It keeps no state and
// takes no locks, so it is as safe for concurrent use as its log; over a [View], which belongs to
// one goroutine, no more than the view.
type Resolver struct {
	Log     OpReader
	Context string
	At      int64 // the newest seq that counts; 0 for all
}

// Resolved is the value of a path, and where it comes from.
type Resolved struct {
	Value  any  // shared: must not be changed
	Exists bool // distinguishes null from missing

	// From are the seqs of the messages that the value is made of, newest
	// first: one for a value that was set, all of them for one that was
	// collected.
	From []int64
	// Misfits are the messages of From that did not fit the value there, and were applied as onto a
	// missing value.
	Misfits []int64

	// blocked is an array above the path, unless something beside the path has
	// replaced it since, below which the path's next segment is no index.
	blocked Path
}

// step is an operation as seen from the path that is asked for: a change of
// the value there, or at a place below it.
type step struct {
	seq    int64
	below  []string
	method Method // or clear
	value  any
	path   Path
}

// clear is the step that leaves nothing: an operation above the path replaced
// what held it.
const clear Method = "clear"

// Resolve returns the value of a path for an instance, or for none.
//
// It walks from the newest operation to the oldest, stops at the one that settles the path, and
// applies the collected operations in the opposite order. A numeric segment is an index or a key
// depending on the value above it: where that may be an array, the path is resolved from there.
func (r Resolver) Resolve(ctx context.Context, path Path, instance string) (Resolved, error) {
	if path.IsZero() {
		return Resolved{}, nil
	}
	anchor, err := r.anchor(ctx, path, instance)
	if err != nil {
		return Resolved{}, err
	}
	steps, blocked, err := r.collect(ctx, anchor, instance)
	if err != nil {
		return Resolved{}, err
	}
	res := fold(steps)
	res.blocked = blocked
	if anchor != path {
		res.descend(anchor, path)
		steps = slices.DeleteFunc(steps, func(s step) bool { return !s.path.Overlaps(path) })
	}
	res.From = provenance(steps, path)
	return res, nil
}

// anchor is the place from which a path is answered: the path itself, or the
// highest place above it that may be an array, for what happens beside the path
// can then take its element away.
func (r Resolver) anchor(ctx context.Context, path Path, instance string) (Path, error) {
	if path.beforeIndex() == path {
		return path, nil
	}
	prefixes := path.Prefixes()
	for i, segment := range path.Segments() {
		if !isDigits(segment) {
			continue
		}
		may, err := r.mayBeArray(ctx, prefixes[i], instance)
		if may || err != nil {
			return prefixes[i], err
		}
	}
	return path, nil
}

// nowhere is a key that no value has: an operation that touches it touches the value above it.
const nowhere = "\x00"

// mayBeArray reports whether a write at a path or above it made it an array, since it was last made
// another type.
func (r Resolver) mayBeArray(ctx context.Context, path Path, instance string) (bool, error) {
	for _, i := range instancesOf(instance) {
		for op, err := range r.Log.Touching(ctx, Query{Context: r.Context, Path: path.Child(nowhere), Instance: i, At: r.At}) {
			if err != nil {
				return false, err
			}
			if !op.Path.Contains(path) {
				continue
			}
			s, kind := op.seenFrom(path)
			if kind == passes {
				continue
			}
			if _, isArray := s.value.([]any); isArray && s.method != clear || s.method == Push {
				return true, nil
			}
			if kind == settles {
				return false, nil
			}
		}
	}
	return false, nil
}

// instancesOf lists whose messages count for an instance, those that win first.
func instancesOf(instance string) []string {
	if instance == "" {
		return []string{""}
	}
	return []string{instance, ""}
}

func (r Resolver) collect(ctx context.Context, anchor Path, instance string) (steps []step, blocked Path, err error) {
	for _, i := range instancesOf(instance) {
		for op, err := range r.Log.Touching(ctx, Query{Context: r.Context, Path: anchor, Instance: i, At: r.At}) {
			if err != nil {
				return nil, Path{}, err
			}
			s, kind := op.seenFrom(anchor)
			if kind == passes {
				continue
			}
			steps = append(steps, s)
			if kind == settles {
				if len(steps) == 1 && s.method == clear {
					blocked = s.path
				}
				return steps, blocked, nil
			}
		}
	}
	return steps, Path{}, nil
}

// bearing is the effect of an operation on a path.
type bearing int

const (
	passes  bearing = iota // it leaves the path's value as it is
	bears                  // it changes the value, and the value before counts
	settles                // it decides the value: nothing older counts
)

// seenFrom turns an operation into a step at the anchor. No part of the anchor is an element of an
// array: an array above it holds nothing of it.
func (op Op) seenFrom(anchor Path) (step, bearing) {
	s := step{seq: op.Seq, method: op.Method, value: op.Value, path: op.Path}
	if anchor.Contains(op.Path) {
		s.below = anchor.below(op.Path)
		_, isObject := op.Value.(map[string]any)
		if len(s.below) == 0 && (op.Method == Set || op.Method == Merge && !isObject) {
			return s, settles
		}
		return s, bears
	}
	above := op.Path.below(anchor)
	switch op.Method {
	case Merge:
		return s.fromMerge(op.Path, above)
	case Assign:
		if object, ok := op.Value.(map[string]any); ok {
			if _, ok := object[above[0]]; !ok {
				return s, passes
			}
		}
	case Push:
		return step{seq: op.Seq, method: clear, path: op.Path}, settles
	}
	return s.replaced(op.Path, above)
}

// fromMerge follows a merged value down to the anchor.
func (s step) fromMerge(at Path, above []string) (step, bearing) {
	for i, segment := range above {
		object, ok := s.value.(map[string]any)
		if !ok {
			return s.replaced(at, above[i:])
		}
		if s.value, ok = object[segment]; !ok {
			return s, passes
		}
		at = at.Child(segment)
	}
	if _, ok := s.value.(map[string]any); ok {
		return s, bears
	}
	return s, settles
}

// replaced follows a value that was put whole at a path down to the anchor.
// Where it ends in an array, the step's path is that array's.
func (s step) replaced(at Path, above []string) (step, bearing) {
	for _, segment := range above {
		if _, ok := s.value.([]any); ok {
			return step{seq: s.seq, method: clear, path: at}, settles
		}
		object, _ := s.value.(map[string]any)
		v, ok := object[segment]
		if !ok {
			return step{seq: s.seq, method: clear}, settles
		}
		s.value, at = v, at.Child(segment)
	}
	s.method = Set
	return s, settles
}

// fold applies steps, which stand newest first, to nothing.
func fold(steps []step) Resolved {
	var res Resolved
	if len(steps) == 1 && len(steps[0].below) == 0 && steps[0].method == Set {
		return Resolved{Value: steps[0].value, Exists: true}
	}
	for _, s := range slices.Backward(steps) {
		if s.method == clear {
			res.Value, res.Exists = nil, false
			continue
		}
		var misfit bool
		res.Value, misfit = apply(res.Value, s.below, s.method, s.value)
		res.Exists = true
		if misfit {
			res.Misfits = append(res.Misfits, s.seq)
		}
	}
	slices.Reverse(res.Misfits)
	res.Value = freeze(res.Value)
	return res
}

// descend goes from the anchor's value to the path's.
func (res *Resolved) descend(anchor, path Path) {
	at := anchor
	for _, segment := range anchor.below(path) {
		if array, ok := res.Value.([]any); ok {
			if i, ok := index(segment); !ok || i > len(array) {
				res.blocked = at
			}
		}
		res.Value, res.Exists = dig(res.Value, []string{segment})
		at = at.Child(segment)
	}
}

// provenance names the messages that a value is made of, without those that newer ones have
// replaced entirely.
func provenance(steps []step, path Path) []int64 {
	seqs := make([]int64, 0, len(steps))
	var replaced map[Path]bool
	for _, s := range steps {
		if s.method == clear {
			continue
		}
		if replaced != nil && slices.ContainsFunc(s.path.Prefixes(), func(p Path) bool { return replaced[p] }) {
			continue
		}
		seqs = append(seqs, s.seq)
		if s.method != Set {
			continue
		}
		if s.path.Contains(path) {
			break
		}
		if replaced == nil {
			replaced = map[Path]bool{}
		}
		replaced[s.path] = true
	}
	return seqs
}
