package sched

import (
	"container/heap"
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

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return q[i].rank.Before(q[j].rank) || q[i].rank == q[j].rank && q[i].call < q[j].call
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(queuedCall)) }

func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func (q *queue) add(c queuedCall) { heap.Push(q, c) }

func (q *queue) take() int { return heap.Pop(q).(queuedCall).call }

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
