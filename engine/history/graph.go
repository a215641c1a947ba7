package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Graph is a plan's data flow, for drawing it (cmd/SURFACE.md, graph).
type Graph struct {
	Nodes []Node `json:"nodes"`
	Wires []Wire `json:"wires"`
}

// Node is a call of a [Graph]. Only a call that has run has a status, a duration and the paths that
// it wrote.
type Node struct {
	After    []string `json:"after,omitempty"` // the paths of its _after
	At       any      `json:"at,omitempty"`    // its _at as issued; nil for none
	Call     int      `json:"call"`            // its position in the plan, from 1
	Duration *float64 `json:"duration_ms,omitempty"`
	// The positions of the calls that one request to a model answers together with it.
	Group    []int          `json:"group,omitempty"`
	Handled  plan.Values    `json:"handled,omitempty"` // the failure of a call that is done all the same
	If       any            `json:"if,omitempty"`      // its _if as issued; nil for none
	In       any            `json:"in,omitempty"`      // its _in, the same
	Instance string         `json:"instance,omitempty"`
	Reads    []string       `json:"reads"`
	Scopes   []string       `json:"scopes"`
	Status   journal.Status `json:"status,omitempty"`
	Tick     int            `json:"tick,omitempty"`
	Tool     string         `json:"tool"`
	Writes   string         `json:"writes"` // its output path as the plan has it; empty for none
	Wrote    []string       `json:"wrote,omitzero"`
}

// Wire is a dependency between two calls of a [Graph], by their positions.
type Wire struct {
	From  int    `json:"from"`
	Order bool   `json:"order"` // it only orders the two
	Path  string `json:"path"`
	Tick  int    `json:"tick,omitempty"`
	To    int    `json:"to"`
}

// GraphOf returns the graph of a plan, with the records of its calls if it has run. tick is the
// number that nodes and wires get; 0 for none.
func GraphOf(p *plan.Plan, records []journal.Record, tick int) Graph {
	ran := map[int]journal.Record{}
	for _, r := range records {
		ran[r.Position] = r
	}
	g := Graph{Nodes: []Node{}, Wires: []Wire{}}
	for i, c := range p.Calls {
		node := Node{Call: c.Position, Tick: tick, Tool: c.Tool, Instance: c.Instance, Reads: texts(c.Reads()), Scopes: texts(c.Scopes())}
		for _, j := range p.Group(i) {
			node.Group = append(node.Group, p.Calls[j].Position)
		}
		if c.Output != nil {
			node.Writes = c.Output.Source
		}
		node.If, node.At, node.In = c.Issued["_if"], c.Issued["_at"], c.Issued["_in"]
		if len(c.After) > 0 {
			node.After = texts(c.After)
		}
		if r, ok := ran[c.Position]; ok {
			node.Status, node.Duration, node.Wrote, node.Handled = r.Status, &r.Duration, append([]string{}, r.Writes...), r.Handled
		}
		g.Nodes = append(g.Nodes, node)
	}
	for _, w := range p.Wires() {
		g.Wires = append(g.Wires, Wire{From: w.From, To: w.To, Path: w.Path.String(), Order: w.Order, Tick: tick})
	}
	return g
}

func texts(paths []store.Path) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = path.String()
	}
	return all
}

// Downstream lists the calls that run again if a call of a tick does, itself first, in the order of
// the plan: those that read paths that it may write, and so on. p is the plan of the tick as it was
// compiled, and records are its calls. Its error is a [*journal.NoSuchCallError] where there is no
// such call, or it has not settled.
func Downstream(ctx context.Context, c journal.Context, p *plan.Plan, records []journal.Record, call string) ([]string, error) {
	d := downstream{ctx: ctx, context: c, plan: p, records: make([]journal.Record, len(p.Calls)), again: make([]bool, len(p.Calls))}
	first := -1
	for _, r := range records {
		if i := r.Position - 1; i >= 0 && i < len(d.records) {
			d.records[i] = r
			if r.Call == call {
				first = i
			}
		}
	}
	switch {
	case first < 0:
		return nil, &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in its tick of context %s", call, c.Name), Absent: true}
	case !d.records[first].Status.Settled():
		return nil, &journal.NoSuchCallError{Message: fmt.Sprintf("call %s has not settled (obelus calls shows why): only one that has can run again", call)}
	}
	d.again[first] = true
	for more := true; more; {
		more = false
		for i := range p.Calls {
			joins, err := d.joins(i)
			if err != nil {
				return nil, err
			}
			if joins {
				d.again[i], more = true, true
			}
		}
	}
	names := []string{call}
	for i, again := range d.again {
		if again && i != first {
			names = append(names, d.records[i].Call)
		}
	}
	return names, nil
}

// downstream is a search for the calls that run again.
type downstream struct {
	ctx     context.Context
	context journal.Context
	plan    *plan.Plan
	records []journal.Record // by index of the call
	again   []bool           // the same
}

// joins reports whether a call runs again too, and is not known to yet.
func (d *downstream) joins(i int) (bool, error) {
	g, call, r := d.plan.Graph, d.plan.Calls[i], d.records[i]
	if d.again[i] || r.At == 0 && r.If == nil && !r.Status.Settled() { // it reads the values that exist then
		return false, nil
	}
	if slices.ContainsFunc(g.Into[i], func(e plan.Edge) bool { return e.Kind == plan.ThoughtEdge && d.again[e.From] }) {
		return true, nil
	}
	refs := call.Refs
	if r.Status == journal.Skipped && r.If != nil && !r.If.Holds && call.If != nil { // nothing else led to that
		refs = call.If.Reads()
	}
	if !g.DependsOnAny(i, slices.Concat(refs, call.ScopePaths), d.again) {
		return false, nil
	}
	if r.Started == "" {
		return true, nil
	}
	read, err := d.readBy(i)
	return err == nil && g.DependsOnAny(i, read, d.again), err
}

// readBy lists the paths that a call read, also those that were missing.
func (d *downstream) readBy(i int) ([]store.Path, error) {
	call, r := d.plan.Calls[i], d.records[i]
	paths := slices.Clone(call.ScopePaths)
	if call.If != nil {
		paths = append(paths, call.If.Reads()...)
	}
	if call.Schedule != nil {
		paths = append(paths, call.Schedule.Reads()...)
	}
	resolver := store.Resolver{Log: d.context.Log, Context: d.context.Name, At: r.At}
	lookup := func(path store.Path) (any, bool, bool, error) {
		paths = append(paths, path)
		if !d.isWritten(i, path) {
			return nil, false, false, nil
		}
		resolved, err := resolver.Resolve(d.ctx, path, call.Instance)
		return resolved.Value, resolved.Exists, false, err
	}
	_, _, err := call.Resolve(d.ctx, expr.Lookup(lookup))
	var fault *plan.Fault
	if errors.As(err, &fault) {
		err = nil // it failed of that before
	}
	return paths, err
}

// isWritten reports whether a path has a value for a call: one that calls of the plan write has
// none before one of them has written it.
func (d *downstream) isWritten(i int, path store.Path) bool {
	sources := d.plan.Graph.SourcesOf(i, path)
	return len(sources) == 0 || slices.ContainsFunc(sources, func(j int) bool {
		return slices.ContainsFunc(d.records[j].Writes, func(text string) bool {
			written, err := store.ParsePath(text)
			return err == nil && written.Contains(path)
		})
	})
}
