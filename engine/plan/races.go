package plan

import (
	"fmt"
	"slices"
	"sync"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/store"
)

// unorderedPair is two calls that write to one path in no certain order.
type unorderedPair struct {
	first, second int
	path          store.Path
	reads         bool // the second reads a path that the first replaces by writing elsewhere
}

// unordered finds calls in no order whose writes overlap, unless all of them push, or only one of
// the two can run. Of the calls that write to one path each is named with one other that it has no
// order with.
func (g *graph) unordered(exists Exists) []unorderedPair {
	var pairs []unorderedPair
	o := sync.OnceValue(func() *orderings { return g.orderings(exists) })
	readers := sync.OnceValue(g.readersOfErrors)
	for _, instance := range jsonvalue.SortedKeys(g.Writers) {
		index := g.Writers[instance]
		var errors []int // each error replaces the one before, wherever it was written
		for _, text := range index.sorted {
			path := store.MustParsePath(text)
			if path.Kind() == store.KindError {
				errors = append(errors, index.byPath[path]...)
				continue
			}
			group := index.Above(path)
			if len(group) < 2 || g.pushTogether(group, path) {
				continue
			}
			pairs = append(pairs, o().unorderedAt(path, group, index.byPath[path])...)
		}
		slices.Sort(errors)
		if errors = slices.Compact(errors); len(errors) == 0 || len(errors) == 1 && len(readers()[instance]) == 0 {
			continue
		}
		replaced := o().unorderedAt(store.KindPath(store.KindError), errors, errors)
		if len(replaced) == 0 { // else the readers are reported with the writers
			replaced = g.readBeside(o(), readers()[instance], errors)
		}
		pairs = append(pairs, replaced...)
	}
	for i := range g.calls {
		beside := g.fitsBeside(i)
		at := slices.IndexFunc(beside, func(p unorderedPair) bool { return o().unordered(p.first, p.second) })
		if at >= 0 {
			pairs = append(pairs, beside[at])
		}
	}
	slices.SortStableFunc(pairs, func(a, b unorderedPair) int { return a.second - b.second })
	return pairs
}

// pushTogether reports whether calls only push where a path is overlapped.
func (g *graph) pushTogether(group []int, path store.Path) bool {
	return !slices.ContainsFunc(group, func(i int) bool {
		return g.calls[i].Method != store.Push || slices.ContainsFunc(g.calls[i].Output.Writes(), func(w store.Path) bool {
			return w != path && w.Overlaps(path)
		})
	})
}

// reader is a call that looks at an error.
type reader struct {
	call int
	path store.Path
}

// readersOfErrors lists the reads of errors by calls, by the instance that may write them: their
// own, or none.
func (g *graph) readersOfErrors() map[string][]reader {
	all := map[string][]reader{}
	for j, call := range g.calls {
		for _, path := range slices.Concat(call.Refs, call.ScopePaths) {
			if path.Kind() != store.KindError {
				continue
			}
			all[""] = append(all[""], reader{j, path})
			if call.Instance != "" {
				all[call.Instance] = append(all[call.Instance], reader{j, path})
			}
		}
	}
	return all
}

// readBeside pairs each call that looks at an error with the first that writes another
// one, by which it is replaced, in no certain order.
func (g *graph) readBeside(o *orderings, readers []reader, writers []int) (pairs []unorderedPair) {
	for _, r := range readers {
		if len(pairs) > 0 && pairs[len(pairs)-1].second == r.call {
			continue
		}
		at := slices.IndexFunc(writers, func(w int) bool {
			return w != r.call && o.unordered(w, r.call) && !o.begun()[w].has(r.call) && !slices.ContainsFunc(g.calls[w].Output.Writes(), r.path.Overlaps)
		})
		if at >= 0 {
			pairs = append(pairs, unorderedPair{writers[at], r.call, r.path, true})
		}
	}
	return pairs
}

// fitsBeside pairs an instance's call with the global ones that decide whether its writes fit: its
// value takes precedence over theirs in any order, but it is checked against the value that it
// reads.
func (g *graph) fitsBeside(i int) (pairs []unorderedPair) {
	call := g.calls[i]
	if call.Instance == "" || g.Writers[""] == nil {
		return nil
	}
	for _, path := range call.Output.Writes() {
		if path.Kind() == store.KindError { // an error fits any value
			continue
		}
		for _, k := range g.Writers[""].overlapping(path) {
			decides := !g.pushTogether([]int{i, k}, path)
			if m := call.JoinMethod(); m == store.Set || m == store.Merge {
				decides = slices.ContainsFunc(g.calls[k].Output.Writes(), func(w store.Path) bool { return w != path && w.Contains(path) })
			}
			if decides {
				pairs = append(pairs, unorderedPair{first: min(i, k), second: max(i, k), path: path})
			}
		}
	}
	return pairs
}

// orderings are the known orders between calls.
type orderings struct {
	place   []int // of each call, in an order in which they can run
	reach   []callSet
	begun   func() []callSet // computed on first use
	choices []map[int]uint64
}

func (g *graph) orderings(exists Exists) *orderings {
	order := g.order()
	place := make([]int, len(g.calls))
	for at, i := range order {
		place[i] = at
	}
	begun := sync.OnceValue(func() []callSet { return g.closure(order, true) })
	return &orderings{place, g.closure(order, false), begun, g.choices(exists)}
}

// unordered reports whether both of two calls may run, in either order.
func (o *orderings) unordered(a, b int) bool {
	return !o.reach[a].has(b) && !o.reach[b].has(a) && !exclusive(o.choices[a], o.choices[b])
}

// Above lists the calls that may write to a path or above it. Every overlap is
// met at the lower of its two paths. The list is shared and must not be
// changed.
func (x *WriterIndex) Above(path store.Path) []int {
	if x == nil {
		return nil
	}
	if known, ok := x.higher[path]; ok {
		return known
	}
	var all []int
	for _, prefix := range path.Prefixes() {
		all = append(all, x.byPath[prefix]...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if !x.built {
		x.higher[path] = all
	}
	return all
}

// unorderedAt pairs each call of a group, in the order in which they run, with the
// nearest before it that it stands in no order to. Of the two, one at least is among
// those that write to the path itself: others have been told apart above it.
func (o *orderings) unorderedAt(path store.Path, group, itself []int) (pairs []unorderedPair) {
	inOrder := func(calls []int) []int {
		return slices.SortedFunc(slices.Values(calls), func(a, b int) int { return o.place[a] - o.place[b] })
	}
	group, itself = inOrder(group), inOrder(itself)
	here := 0 // how many of itself come before
	for n, b := range group {
		before := itself[:here]
		if here < len(itself) && itself[here] == b {
			before = group[:n]
			here++
		}
		for _, a := range slices.Backward(before) {
			if o.unordered(a, b) {
				pairs = append(pairs, unorderedPair{first: min(a, b), second: max(a, b), path: path})
				break
			}
		}
	}
	return pairs
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
		if waits[i] = len(g.Into[i]); waits[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, e := range g.OutOf[order[at]] {
			if waits[e.To]--; waits[e.To] == 0 {
				order = append(order, e.To)
			}
		}
	}
	return order
}

// callSet is a set of calls.
type callSet []uint64

func (s callSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// add adds a call, and the calls of another set.
func (s callSet) add(i int, others callSet) {
	if i >= 0 {
		s[i/64] |= 1 << (i % 64)
	}
	for w := range others {
		s[w] |= others[w]
	}
}

// closure returns, for each call, the calls that have settled before it starts; or, with begun,
// that have started. A call that only has to be read first may still write later.
func (g *graph) closure(order []int, begun bool) []callSet {
	words := (len(g.calls) + 63) / 64
	reach := make([]callSet, len(g.calls))
	settled := reach // before it settles, however it does
	if slices.ContainsFunc(g.calls, func(c *Call) bool { return c.If != nil }) {
		settled = make([]callSet, len(g.calls)) // a condition skips a call before it has waited for the rest
	}
	for _, i := range order {
		reach[i] = make(callSet, words)
		apart := &settled[i] != &reach[i]
		if apart {
			settled[i] = make(callSet, words)
		}
		for _, e := range g.Into[i] {
			from, before := e.From, settled[e.From]
			if e.Kind == ReadEdge && !begun {
				from = -1
			}
			if apart && (g.calls[i].If == nil || e.Kind == IfEdge) {
				settled[i].add(from, before)
			}
			if apart && g.needsWrite(e) {
				before = reach[e.From]
			}
			reach[i].add(from, before)
		}
	}
	return reach
}

// needsWrite reports whether the call that an edge leads to runs only if the other one has run.
func (g *graph) needsWrite(e Edge) bool {
	if e.Kind != dataEdge && e.Kind != IfEdge || len(g.SourcesOf(e.To, e.path)) == 0 {
		return false
	}
	for _, other := range g.Into[e.To] {
		if other.path == e.path && other.From != e.From && other.Kind == e.Kind {
			return false
		}
	}
	needs := func(p param) (needed bool) {
		p.Each(func(x *expr.Expr) { needed = needed || slices.Contains(x.Needs(), e.path) })
		return needed
	}
	return slices.ContainsFunc(templates(g.calls[e.To]), needs)
}

// choices gives, for each call, the alternatives of other calls behind which it stands: by call, a
// mask of those that let it run. A condition is a choice as well, between itself and its negation,
// by a number below 0.
func (g *graph) choices(exists Exists) []map[int]uint64 {
	all, conditions := make([]map[int]uint64, len(g.calls)), map[string]int{}
	for _, j := range g.order() {
		choice := map[int]uint64{}
		if text, negated := g.condition(j); text != "" {
			n, ok := conditions[text]
			if !ok {
				n = -1 - len(conditions)
				conditions[text] = n
			}
			choice[n] = 1
			if negated {
				choice[n] = 2
			}
		}
		for _, p := range templates(g.calls[j]) {
			p.Each(func(e *expr.Expr) {
				for _, path := range e.Needs() {
					g.choose(choice, all, j, path, exists)
				}
			})
		}
		all[j] = choice
	}
	return all
}

// condition returns a call's condition without its negation, with the calls that it waits for: two
// calls with the same are evaluated in one step, on the same values. It is empty without one.
func (g *graph) condition(j int) (text string, negated bool) {
	call := g.calls[j]
	if call.If == nil || call.If.Expr == nil {
		return "", false
	}
	text, negated = call.If.Expr.Unnegated()
	var waits []string
	for _, e := range g.Into[j] {
		if e.Kind == IfEdge {
			waits = append(waits, fmt.Sprintf("%d %s", e.From, e.path))
		}
	}
	slices.Sort(waits)
	return fmt.Sprintf("%s\n%q\n%q", text, call.Instance, waits), negated
}

// choose narrows a call's choice by one reference that it needs, if a single
// call can satisfy it and nothing that is there already does.
func (g *graph) choose(choice map[int]uint64, all []map[int]uint64, j int, path store.Path, exists Exists) {
	var writers []int
	for _, e := range g.Into[j] {
		if (e.Kind == dataEdge || e.Kind == IfEdge) && e.path == path {
			writers = append(writers, e.From)
		}
	}
	if len(writers) != 1 {
		return
	}
	writer := writers[0]
	if len(g.SourcesOf(j, path)) == 0 {
		if there, err := exists(path, g.calls[j].Instance); there || err != nil {
			return
		}
	}
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
	if len(g.calls[writer].Output.Alternatives) > 1 { // else it is no choice
		narrow(writer, mask)
	}
	for call, mask := range all[writer] {
		narrow(call, mask)
	}
}
