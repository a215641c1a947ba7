package sched

import (
	"maps"
	"slices"
	"time"

	"obelus/store"
)

// queue is a heap of calls, ordered by when they are due, then by place in the plan.
type queue []queuedCall

// queuedCall is an element of a queue.
type queuedCall struct {
	due  time.Duration // of a paused call, since the run was opened; else 0
	call int
}

func (c queuedCall) before(other queuedCall) bool {
	return c.due < other.due || c.due == other.due && c.call < other.call
}

// push adds a call. It and pop are written out, since container/heap would allocate in both.
func (q *queue) push(c queuedCall) {
	*q = append(*q, c)
	h := *q
	for i := len(h) - 1; i > 0 && h[i].before(h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

// pop removes the first call and returns it.
func (q *queue) pop() int {
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

// remove removes a call, which is most often the first.
func (q *queue) remove(call int) {
	if (*q)[0].call == call {
		q.pop()
		return
	}
	left := slices.DeleteFunc(*q, func(c queuedCall) bool { return c.call == call })
	*q = (*q)[:0]
	for _, c := range left {
		q.push(c)
	}
}

// waitIndex finds the calls that wait for a path. It holds, by each path that is waited for and by
// each path above one, the calls with all the paths that each waits for.
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

// removeOverlapping removes the calls that wait for a value at, above or below a path, and returns
// them in the order of the plan.
func (x waitIndex) removeOverlapping(path store.Path) []int {
	found := maps.Clone(x[path])
	for _, above := range path.Prefixes() {
		for i, paths := range x[above] {
			if slices.Contains(paths, above) {
				if found == nil {
					found = map[int][]store.Path{}
				}
				found[i] = paths
			}
		}
	}
	for i, paths := range found {
		for _, waited := range paths {
			for _, prefix := range waited.Prefixes() {
				delete(x[prefix], i)
				if len(x[prefix]) == 0 {
					delete(x, prefix)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
