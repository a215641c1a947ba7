package engine

import (
	"slices"

	"obelus/store"
)

// unorderedPair is two calls that write to one path in no certain order.
type unorderedPair struct {
	first, second int
	path          store.Path
}

// unordered finds calls whose writes overlap and that nothing puts in order,
// unless all of them push, or only one of the two can come to run. Of each
// group that writes to one path it names the first such pair of neighbours.
func (g *graph) unordered() []unorderedPair {
	var pairs []unorderedPair
	var order []int
	var reach []bits
	var choices []map[int]uint64
	for _, instance := range sortedKeys(g.writers) {
		index := g.writers[instance]
		for _, text := range index.sorted {
			path := store.MustParsePath(text)
			group := index.above(path)
			if len(group) < 2 || !slices.ContainsFunc(group, func(i int) bool { return g.calls[i].Method != store.Push }) {
				continue
			}
			if reach == nil {
				order, choices = g.order(), g.choices()
				reach = g.closure(order)
			}
			if pair, ok := firstUnordered(group, order, reach, choices); ok {
				pair.path = path
				pairs = append(pairs, pair)
			}
		}
	}
	return pairs
}

// above lists the calls that may write to a path or above it. Every overlap is
// met at the lower of its two paths.
func (x *writerIndex) above(path store.Path) []int {
	var all []int
	for _, prefix := range path.Prefixes() {
		all = append(all, x.byPath[prefix]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func firstUnordered(group, order []int, reach []bits, choices []map[int]uint64) (unorderedPair, bool) {
	place := make(map[int]int, len(group))
	for at, i := range order {
		place[i] = at
	}
	slices.SortFunc(group, func(a, b int) int { return place[a] - place[b] })
	for n := 1; n < len(group); n++ {
		for m := n - 1; m >= 0; m-- {
			a, b := group[m], group[n]
			if reach[b].has(a) {
				break // and so it follows all that a follows
			}
			if !exclusive(choices[a], choices[b]) {
				return unorderedPair{first: min(a, b), second: max(a, b)}, true
			}
		}
	}
	return unorderedPair{}, false
}

func exclusive(a, b map[int]uint64) bool {
	for call, mask := range a {
		if other, ok := b[call]; ok && mask&other == 0 {
			return true
		}
	}
	return false
}

// order lists the calls so that each comes after all that it waits for.
func (g *graph) order() []int {
	waits := make([]int, len(g.calls))
	var order []int
	for i := range g.calls {
		if waits[i] = len(g.into[i]); waits[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, e := range g.outOf[order[at]] {
			if waits[e.to]--; waits[e.to] == 0 {
				order = append(order, e.to)
			}
		}
	}
	return order
}

// bits is a set of calls.
type bits []uint64

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// closure gives, for each call, the calls that it waits for, directly or not.
func (g *graph) closure(order []int) []bits {
	words := (len(g.calls) + 63) / 64
	reach := make([]bits, len(g.calls))
	for _, i := range order {
		reach[i] = make(bits, words)
		for _, e := range g.into[i] {
			reach[i][e.from/64] |= 1 << (e.from % 64)
			for w := range words {
				reach[i][w] |= reach[e.from][w]
			}
		}
	}
	return reach
}

// choices gives, for each call, the alternatives of other calls behind which
// it stands: by call, a mask of those that let it run.
func (g *graph) choices() []map[int]uint64 {
	all := make([]map[int]uint64, len(g.calls))
	for _, j := range g.order() {
		choice := map[int]uint64{}
		for _, name := range sortedKeys(g.calls[j].params) {
			g.calls[j].params[name].each(func(e *Expr) {
				for _, path := range e.root.needs() {
					g.choose(choice, all, j, path)
				}
			})
		}
		all[j] = choice
	}
	return all
}

// choose narrows a call's choice by one reference that it needs, if a single
// call can satisfy it.
func (g *graph) choose(choice map[int]uint64, all []map[int]uint64, j int, path store.Path) {
	before, after := g.split(j, path)
	if len(before)+len(after) != 1 {
		return
	}
	writer := slices.Concat(before, after)[0]
	var mask uint64
	for n, paths := range g.calls[writer].Output.Alternatives {
		if slices.ContainsFunc(paths, path.Overlaps) {
			mask |= 1 << n
		}
	}
	narrow := func(call int, mask uint64) {
		if old, ok := choice[call]; ok {
			mask &= old
		}
		choice[call] = mask
	}
	narrow(writer, mask)
	for call, mask := range all[writer] {
		narrow(call, mask)
	}
}
