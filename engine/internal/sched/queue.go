package sched

import (
	"maps"
	"slices"

	"obelus/engine/journal"
	"obelus/store"
)

// queue is a heap of calls. They come in the order of the plan, or, when they are replayed, in that
// in which they began.
type queue []queuedCall

// queuedCall is a call that may have its turn.
type queuedCall struct {
	rank journal.Position
	call int
}

func (c queuedCall) before(other queuedCall) bool {
	return c.rank.Before(other.rank) || c.rank == other.rank && c.call < other.call
}

// add adds a call. It is written out, as take is, since container/heap would allocate for both.
func (q *queue) add(c queuedCall) {
	*q = append(*q, c)
	h := *q
	for i := len(h) - 1; i > 0 && h[i].before(h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

// take removes the first call and returns it.
func (q *queue) take() int {
	h := *q
	first, last := h[0].call, len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h) && h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return first
}

// waitIndex finds the calls that wait for a path: under it stand those that wait for it or for
// something below it.
type waitIndex map[store.Path]map[int][]store.Path

func (x waitIndex) add(i int, refs []string) {
	var paths []store.Path
	for _, text := range refs {
		if path, err := store.ParsePath(text); err == nil {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		for _, prefix := range path.Prefixes() {
			if x[prefix] == nil {
				x[prefix] = map[int][]store.Path{}
			}
			x[prefix][i] = paths
		}
	}
}

// take removes the calls that wait for a path that overlaps another, and returns them.
func (x waitIndex) take(path store.Path) []int {
	woken := maps.Clone(x[path])
	for _, above := range path.Prefixes() {
		for i, paths := range x[above] {
			if slices.Contains(paths, above) {
				if woken == nil {
					woken = map[int][]store.Path{}
				}
				woken[i] = paths
			}
		}
	}
	for i, paths := range woken {
		for _, waited := range paths {
			for _, prefix := range waited.Prefixes() {
				delete(x[prefix], i)
				if len(x[prefix]) == 0 {
					delete(x, prefix)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(woken))
}
