package plan

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"obelus/engine/internal/bounds"
	"obelus/store"
)

// EdgeKind says why a call waits for another (protocol §7).
type EdgeKind int

const (
	dataEdge    EdgeKind = iota // it reads a path that the other may write
	IfEdge                      // its condition reads one, before it reads anything else
	afterEdge                   // its _after names a path that the other may write
	scopeEdge                   // its scopes hold a path that the other may write
	ReadEdge                    // it writes over a path that the other has still to read
	ThoughtEdge                 // it is latent, and the other a thought before it
)

// Edge is a wire of the graph: call To waits for call From. Calls are numbered from 0.
type Edge struct {
	From, To int
	path     store.Path // read by To; of a ReadEdge, read by From
	Kind     EdgeKind
}

// graph is how a plan's calls depend on each other.
type graph struct {
	calls []*Call
	Into  [][]Edge // by the call that waits
	OutOf [][]Edge // by the call that is waited for

	// sources are, for each call and each of its reads, the calls before it that
	// write there or above: only they can satisfy the reference.
	sources [][][]int

	Writers map[string]*WriterIndex // by instance

	blind map[spot][]int // see blindTo; while the graph is built

	backward bool // some call waits for one that stands after it
	edges    int  // number of edges, up to one more than bounds.MaxEdges
}

var errTooWide = errors.New("the calls wait for each other in too many ways, more than a million: have fewer of them read what many write, or write to fewer paths")

// WriterIndex finds the calls that may write what overlaps a path.
type WriterIndex struct {
	byPath map[store.Path][]int
	sorted []string // the texts of the paths

	known  map[store.Path][]int // writers of paths that overlap the references of calls
	higher map[store.Path][]int // those of them that write at or above the reference
	built  bool                 // both maps are complete, and may be read concurrently
}

func newGraph(calls []*Call, exists Exists) (*graph, error) {
	g := &graph{
		calls:   calls,
		Into:    make([][]Edge, len(calls)),
		OutOf:   make([][]Edge, len(calls)),
		sources: make([][][]int, len(calls)),
		Writers: map[string]*WriterIndex{},
		blind:   map[spot][]int{},
	}
	g.indexWriters()
	for j, call := range calls {
		g.sources[j] = make([][]int, len(call.Refs))
		for i, r := range call.Refs {
			g.sources[j][i] = g.above(j, r)
			if err := g.wireReference(j, r, exists); err != nil {
				return nil, err
			}
		}
		for _, r := range call.ScopePaths {
			before, _ := g.SplitWriters(j, r)
			g.wire(g.newest(before, j, r), j, r, scopeEdge)
		}
		for _, r := range call.After {
			before, after := g.SplitWriters(j, r)
			g.wire(before, j, r, afterEdge)
			g.wire(after, j, r, afterEdge)
			g.backward = g.backward || len(after) > 0
		}
	}
	if g.edges <= bounds.MaxEdges {
		g.wireReads()
		g.wireThoughts()
	}
	if g.edges > bounds.MaxEdges {
		return nil, errTooWide
	}
	for _, index := range g.Writers {
		index.built = true
	}
	g.blind = nil
	return g, nil
}

func (g *graph) indexWriters() {
	for i, call := range g.calls {
		index := g.Writers[call.Instance]
		if index == nil {
			index = &WriterIndex{byPath: map[store.Path][]int{}, known: map[store.Path][]int{}, higher: map[store.Path][]int{}}
			g.Writers[call.Instance] = index
		}
		for _, path := range call.Output.Writes() {
			if index.byPath[path] == nil {
				index.sorted = append(index.sorted, path.String())
			}
			index.byPath[path] = append(index.byPath[path], i)
		}
	}
	for _, index := range g.Writers {
		slices.Sort(index.sorted)
	}
}

// overlapping lists, in the order of the plan, the calls that may write what
// overlaps a path. The list is shared and must not be changed.
func (x *WriterIndex) overlapping(path store.Path) []int {
	if x == nil {
		return nil
	}
	if known, ok := x.known[path]; ok {
		return known
	}
	var all []int
	for _, prefix := range path.Prefixes() {
		all = append(all, x.byPath[prefix]...)
	}
	for _, separator := range []string{".", "["} {
		below := path.String() + separator
		for at := sort.SearchStrings(x.sorted, below); at < len(x.sorted) && strings.HasPrefix(x.sorted[at], below); at++ {
			all = append(all, x.byPath[store.MustParsePath(x.sorted[at])]...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if !x.built {
		x.known[path] = all
	}
	return all
}

// SeenBy lists, in the order of the plan, the writers that an instance sees: its own and the global
// ones. The list may be shared, and must not be changed.
func (g *graph) SeenBy(instance string, of func(*WriterIndex) []int) []int {
	all := of(g.Writers[""])
	if instance != "" {
		all = slices.Concat(all, of(g.Writers[instance]))
		slices.Sort(all)
	}
	return all
}

// overlapping lists the calls whose writes, if an instance sees them, overlap r.
func (g *graph) overlapping(instance string, r store.Path) []int {
	return g.SeenBy(instance, func(x *WriterIndex) []int { return x.overlapping(r) })
}

// SplitWriters lists the calls before and after j whose writes, if j sees them,
// overlap r.
func (g *graph) SplitWriters(j int, r store.Path) (before, after []int) {
	all := g.overlapping(g.calls[j].Instance, r)
	at, found := slices.BinarySearch(all, j)
	before, after = all[:at], all[at:]
	if found {
		after = after[1:]
	}
	return before, after
}

// WritersFor lists the calls that call j waited for to read r: where one before it may
// write it, those after it count for nothing.
func (g *graph) WritersFor(j int, r store.Path) []int {
	before, after := g.SplitWriters(j, r)
	if len(before) > 0 {
		return before
	}
	return after
}

// wireReference applies rules 1 and 2 to one reference.
func (g *graph) wireReference(j int, r store.Path, exists Exists) error {
	before, after := g.SplitWriters(j, r)
	kind := dataEdge
	if conditionReads(g.calls[j], r) {
		kind = IfEdge
	}
	g.wire(g.newest(before, j, r), j, r, kind)
	if len(before) > 0 || len(after) == 0 {
		return nil
	}
	there, err := exists(r, g.calls[j].Instance)
	if err == nil && !there {
		g.backward = true
		g.wire(after, j, r, kind)
	}
	return err
}

// DependsOnAny reports whether call j waited for a call of a set before it read some paths. A call
// of the set that stands after j counts where j waited for its write, directly or not.
func (g *graph) DependsOnAny(j int, looked []store.Path, set []bool) bool {
	var waited map[int]bool
	return slices.ContainsFunc(looked, func(r store.Path) bool {
		earlier, later := g.SplitWriters(j, r)
		if slices.ContainsFunc(earlier, func(i int) bool { return set[i] }) {
			return true
		}
		return g.backward && slices.ContainsFunc(later, func(i int) bool {
			if set[i] && waited == nil {
				waited = g.Ancestors(j)
			}
			return set[i] && waited[i]
		})
	})
}

// SourcesOf are the sources of one of call j's reads.
func (g *graph) SourcesOf(j int, r store.Path) []int {
	if i := slices.Index(g.calls[j].Refs, r); i >= 0 {
		return g.sources[j][i]
	}
	return nil
}

// above lists the calls before j whose writes, if j sees them, are at r or
// above it.
func (g *graph) above(j int, r store.Path) []int {
	all := g.SeenBy(g.calls[j].Instance, func(x *WriterIndex) []int { return x.Above(r) })
	at, _ := slices.BinarySearch(all, j)
	return all[:at]
}

// newest leaves out writers before j that a later one waits for anyway, for it reads there too. One
// with a condition may be skipped before it has waited.
func (g *graph) newest(before []int, j int, r store.Path) []int {
	if len(before) <= bounds.ManyWriters {
		return before
	}
	for n := len(before) - 1; n > 0; n-- {
		if w := g.calls[before[n]]; w.If == nil && w.Instance == g.calls[j].Instance && w.looksAt(r) {
			return before[n:]
		}
	}
	return before
}

// Overwriters are the calls that wait until call i has read.
func (g *graph) Overwriters(i int) map[int]bool {
	all := map[int]bool{}
	if g.backward { // then none is left out
		for _, e := range g.OutOf[i] {
			all[e.To] = all[e.To] || e.Kind == ReadEdge
		}
		return all
	}
	for _, r := range slices.Concat(g.calls[i].Refs, g.calls[i].ScopePaths) {
		_, after := g.SplitWriters(i, r)
		for _, k := range after {
			all[k] = true
		}
	}
	return all
}

// Ancestors are the calls that call i depends on, directly or not.
func (g *graph) Ancestors(i int) map[int]bool {
	return follow(i, g.Into, func(e Edge) (int, bool) { return e.From, e.Kind != ReadEdge && e.Kind != ThoughtEdge })
}

// Downstream are the calls that wait for call i, directly or not.
func (g *graph) Downstream(i int) map[int]bool {
	return follow(i, g.OutOf, func(e Edge) (int, bool) { return e.To, true })
}

// follow finds the calls that edges reach from call i; leads returns the other end of an edge, and
// whether the edge counts.
func follow(i int, edges [][]Edge, leads func(Edge) (to int, counts bool)) map[int]bool {
	all, stack := map[int]bool{}, []int{i}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range edges[at] {
			if to, counts := leads(e); counts && to != i && !all[to] {
				all[to] = true
				stack = append(stack, to)
			}
		}
	}
	return all
}

// looksAt reports whether the call reads a path or has it in its scopes.
func (c *Call) looksAt(path store.Path) bool {
	above := func(p store.Path) bool { return p.Contains(path) }
	return slices.ContainsFunc(c.Refs, above) || slices.ContainsFunc(c.ScopePaths, above)
}

func (g *graph) wire(from []int, to int, path store.Path, kind EdgeKind) {
	for _, i := range from {
		g.add(Edge{i, to, path, kind})
	}
}

func (g *graph) add(e Edge) {
	if g.edges > bounds.MaxEdges {
		return
	}
	g.edges++
	g.Into[e.To] = append(g.Into[e.To], e)
	g.OutOf[e.From] = append(g.OutOf[e.From], e)
}

// wireReads adds the edges by which a writer waits until earlier readers have read, except readers
// that depend on the writer themselves. The condition of such a reader waits for the writer too:
// else it would be left to chance which value it reads.
func (g *graph) wireReads() {
	var edges []Edge
	for j, call := range g.calls {
		for _, r := range slices.Concat(call.Refs, call.ScopePaths) {
			if edges = append(edges, g.readEdges(j, r)...); len(edges) > bounds.MaxEdges {
				g.edges = bounds.MaxEdges + 1
				return
			}
		}
	}
	reach := reachability{g: g}
	if g.backward {
		slices.SortStableFunc(edges, func(a, b Edge) int { return a.To - b.To })
		var asked []Edge
		edges = slices.DeleteFunc(edges, func(e Edge) bool {
			depends := reach.from(e.To)[e.From]
			if depends && conditionReads(g.calls[e.From], e.path) {
				asked = append(asked, Edge{e.To, e.From, e.path, IfEdge})
			}
			return depends
		})
		for _, e := range asked {
			if !slices.Contains(g.Into[e.To], e) {
				edges = append(edges, e)
			}
		}
	}
	for _, e := range edges {
		g.add(e)
	}
}

// readEdges holds the calls after j that write to r until j has read. A writer that reads there
// itself waits for the first of them anyway, if it sees its write, and is left out.
func (g *graph) readEdges(j int, r store.Path) []Edge {
	_, after := g.SplitWriters(j, r)
	if len(after) > bounds.ManyWriters && !g.backward {
		blind := g.blindTo(r, g.calls[j].Instance, g.calls[after[0]].Instance)
		at, _ := slices.BinarySearch(blind, after[0]+1)
		after = append([]int{after[0]}, blind[at:]...)
	}
	edges := make([]Edge, len(after))
	for n, k := range after {
		edges[n] = Edge{j, k, r, ReadEdge}
	}
	return edges
}

// blindTo lists the calls that write to r, as far as an instance sees them, and do not read there,
// or see nothing of the writes of another instance there.
func (g *graph) blindTo(r store.Path, instance, writer string) []int {
	at := spot{r, instance, writer}
	blind, ok := g.blind[at]
	if !ok {
		blind = slices.DeleteFunc(slices.Clone(g.overlapping(instance, r)), func(k int) bool {
			call := g.calls[k]
			return (writer == "" || writer == call.Instance) && call.looksAt(r)
		})
		g.blind[at] = blind
	}
	return blind
}

// spot is a path as an instance sees it, and the instance of its writer.
type spot struct {
	path             store.Path
	instance, writer string
}

// reachability answers which calls depend on one call. It remembers the last
// answer: questions come in runs.
type reachability struct {
	g    *graph
	last int
	seen []bool
}

func (r *reachability) from(i int) []bool {
	if r.seen != nil && r.last == i {
		return r.seen
	}
	r.last, r.seen = i, make([]bool, len(r.g.calls))
	stack := []int{i}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range r.g.OutOf[at] {
			if !r.seen[e.To] {
				r.seen[e.To] = true
				stack = append(stack, e.To)
			}
		}
	}
	return r.seen
}

func (g *graph) Label(i int) string {
	return fmt.Sprintf("call %d (%s)", g.calls[i].Position, g.calls[i].Tool)
}

// Wire is a dependency between two calls of a plan, for drawing it. Calls go
// by their positions, from 1.
type Wire struct {
	From, To int
	Path     store.Path // read by To, and perhaps written by From
	// It only orders the two: a scope, or a value that is read before it is written over.
	Order bool
}

// Wires lists the plan's dependencies: one for each reference and each call
// that it may come from.
func (p *Plan) Wires() []Wire {
	var wires []Wire
	for _, into := range p.Graph.Into {
		for _, e := range into {
			wires = append(wires, Wire{e.From + 1, e.To + 1, e.path, e.Kind != dataEdge && e.Kind != IfEdge})
		}
	}
	return wires
}

// Reads lists the paths that the call's condition and parameters refer to, in the order of the
// parameters' names, each once.
func (c *Call) Reads() []store.Path { return c.Refs }

// Scopes lists the paths that the call's activity may see.
func (c *Call) Scopes() []store.Path { return c.ScopePaths }
