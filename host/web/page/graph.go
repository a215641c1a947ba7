package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/numeral"
	"obelus/engine/plan"
	"obelus/host/web/internal/layers"
	"obelus/store"
)

// mostNodes is the number of calls that a graph shows one by one. In a larger one the calls of a
// tool are one node.
const mostNodes = 120

// The sizes of a drawing, in pixels.
const (
	nodeWidth  = 200
	nodeHeight = 46
	gapAcross  = 150 // between layers, where the paths stand
	gapDown    = 18
	margin     = 12
)

// graphView is a drawing of a tick's plan.
type graphView struct {
	address
	Width, Height int
	Nodes         []graphNode
	Wires         []graphWire
	Grouped       bool // nodes stand for all calls of a tool
	Failed        bool // a call has failed
	Ticks         []int
	Tick          int
	None          string // why there is nothing to draw
	Plan          *planMade
}

// planMade is a tick's plan as it was made, and by whom.
type planMade struct {
	By      string // a function or a model; empty for a plan that is a list of calls
	Usage   string // of the model
	Refused bool   // the calls were refused, and its planner asked again
	ByModel bool
	Calls   node
}

// graphNode is a call, or all calls of a tool.
type graphNode struct {
	ID, Title, Note, Word string
	X, Y                  int
	Query                 string // of the page that shows it
	Picked, Dimmed        bool
}

// graphWire is a dependency between two nodes.
type graphWire struct {
	Curve    string // the path of SVG
	Path     string // the data that flows
	X, Y     int    // of the path's text
	Dashed   bool   // it only orders, or nothing flowed
	From, To string // the ids of the nodes
}

// NodeWidth and NodeHeight are the sizes of a node.
func (graphView) NodeWidth() int { return nodeWidth }

// NodeHeight is described at [graphView.NodeWidth].
func (graphView) NodeHeight() int { return nodeHeight }

func (l reader) graphOf(ctx context.Context, v address, lines []*journal.Line, ticks []engine.Tick) (g graphView, err error) {
	if g, err = l.drawTick(ctx, lines, ticks, v); err != nil {
		return g, err
	}
	if g.Plan, err = l.planMade(ctx, v.Context, ticks, g.Tick); g.Plan != nil && g.Plan.Refused {
		g.None = "No plan was taken for this tick."
	}
	return g, err
}

// planMade returns the plan of a tick as it was made.
func (l reader) planMade(ctx context.Context, name string, ticks []engine.Tick, tick int) (*planMade, error) {
	i := slices.IndexFunc(ticks, func(r engine.Tick) bool { return r.Tick == tick })
	if i < 0 {
		return nil, nil
	}
	events, err := l.Begun(ctx, name, 0)
	begun := slices.IndexFunc(events, func(e journal.PlanEvent) bool { return e.Tick == tick })
	if err != nil || begun < 0 {
		return nil, err
	}
	made, event := &planMade{}, events[begun]
	var calls any
	if event.Refused != nil {
		made.Refused = true
		if calls, err = journal.DecodeJSON(event.Refused.Solution); err != nil {
			return nil, err
		}
	} else {
		issued := make([]any, 0, len(ticks[i].Plan.Calls))
		for _, call := range ticks[i].Plan.Calls {
			issued = append(issued, call.Issued)
		}
		calls = issued
	}
	made.Calls = newRoom().treeOf("calls", "", calls, "")
	switch {
	case event.ByModel:
		made.By, made.ByModel, made.Usage = "a model", true, usageText(event.Model)
	case event.Planner:
		made.By = "the plan's function"
	}
	return made, nil
}

// drawTick draws the tick that an address asks for, or the newest.
func (l reader) drawTick(ctx context.Context, lines []*journal.Line, ticks []engine.Tick, a address) (graphView, error) {
	g := graphView{address: a}
	if len(ticks) == 0 {
		g.None = "Nothing had run here at that moment."
		return g, nil
	}
	one := ticks[len(ticks)-1]
	for _, other := range ticks {
		g.Ticks = append(g.Ticks, other.Tick)
		if other.Tick == a.Tick {
			one = other
		}
	}
	g.Tick = one.Tick
	lines = journal.OfTick(lines, one.Tick)
	switch n := len(one.Plan.Calls); {
	case n == 0:
		g.None = "The plan of this tick has no calls."
	case n > mostNodes:
		tools, wires := flowOf(one.Plan)
		g.drawGroups(tools, wires, lines)
	default:
		records, err := l.Records(ctx, a.Context, lines)
		if err != nil {
			return g, err
		}
		g.drawCalls(history.GraphOf(one.Plan, records, one.Tick), records)
	}
	return g, nil
}

// drawPlan draws a plan that has not run.
func drawPlan(data *history.Graph) graphView {
	g := graphView{}
	if len(data.Nodes) <= mostNodes {
		g.drawCalls(*data, nil)
		return g
	}
	tools := make([]string, len(data.Nodes))
	for i, n := range data.Nodes {
		tools[i] = n.Tool
	}
	var wires []layers.Wire
	for _, w := range data.Wires {
		wires = append(wires, layers.Wire{From: w.From - 1, To: w.To - 1})
	}
	g.drawGroups(tools, wires, nil)
	return g
}

func (g *graphView) drawCalls(data history.Graph, records []journal.Record) {
	by := map[int]journal.Record{}
	for _, r := range records {
		by[r.Position] = r
	}
	near := neighbours(data, g.address)
	for _, n := range data.Nodes {
		node := graphNode{ID: fmt.Sprintf("node-%d", n.Call), Title: fmt.Sprintf("%d %s", n.Call, n.Tool), Note: n.Writes}
		if n.Tick > 0 {
			id := journal.CallID(n.Tick, n.Call)
			node.Title, node.Query, node.Picked = id+" "+n.Tool, g.With("sel", id), id == g.Call
		}
		if n.Instance != "" {
			node.Title += " [" + n.Instance + "]"
		}
		if r, ok := by[n.Call]; ok {
			node.Word, node.Note = journal.WordOf(&r), noteOf(r)
			g.Failed = g.Failed || r.Status == journal.Failed
		}
		node.Dimmed = near != nil && !near[n.Call] || g.Status != "" && node.Word != g.Status
		g.Nodes = append(g.Nodes, node)
	}
	index := map[int]int{}
	for i, n := range data.Nodes {
		index[n.Call] = i
	}
	var wires []layers.Wire
	paths := map[layers.Wire][]string{}
	dashed := map[layers.Wire]bool{}
	for _, w := range data.Wires {
		wire := layers.Wire{From: index[w.From], To: index[w.To]}
		if _, known := paths[wire]; !known {
			wires = append(wires, wire)
			dashed[wire] = true
		}
		if path := strings.TrimPrefix(w.Path, store.Dagger); !slices.Contains(paths[wire], path) {
			paths[wire] = append(paths[wire], path)
		}
		if r, ok := by[w.From]; !w.Order && (!ok || r.Status != journal.Skipped && r.Status != journal.Failed) && by[w.To].Status != journal.Skipped {
			dashed[wire] = false
		}
	}
	g.place(wires, paths, dashed)
}

// noteOf says what stands below the name of a call.
func noteOf(r journal.Record) string {
	if r.Status == journal.Done && r.Started != "" {
		return strings.TrimSpace(duration(r.Duration) + "  " + strings.Join(r.Writes, " "))
	}
	return resultText(r)
}

// neighbours returns the positions of the calls that the call at the side depends on or that depend
// on it, as far as they are followed; nil where there is none at the side.
func neighbours(data history.Graph, a address) map[int]bool {
	_, position, ok := strings.Cut(a.Call, ".")
	if !ok {
		return nil
	}
	start := 0
	if _, err := fmt.Sscan(position, &start); err != nil {
		return nil
	}
	near := map[int]bool{start: true}
	walk := func(next func(history.Wire) (from, to int)) {
		reached := map[int]bool{start: true}
		for grown := true; grown; {
			grown = false
			for _, w := range data.Wires {
				if from, to := next(w); reached[from] && !reached[to] {
					reached[to], near[to], grown = true, true, true
				}
			}
		}
	}
	if a.Follows(followDown) {
		walk(func(w history.Wire) (int, int) { return w.From, w.To })
	}
	if a.Follows(followUp) {
		walk(func(w history.Wire) (int, int) { return w.To, w.From })
	}
	return near
}

// flowOf returns the tools of a plan's calls, and which of them wait for which, as indexes.
func flowOf(p *plan.Plan) (tools []string, wires []layers.Wire) {
	tools, wires = make([]string, 0, len(p.Calls)), make([]layers.Wire, 0, len(p.Calls))
	for _, c := range p.Calls {
		tools = append(tools, c.Tool)
	}
	for _, into := range p.Graph.Into {
		for _, e := range into {
			wires = append(wires, layers.Wire{From: e.From, To: e.To})
		}
	}
	return tools, wires
}

// drawGroups draws one node for each tool. calls are the tools of the calls, and flow has which
// calls wait for which, as indexes.
func (g *graphView) drawGroups(calls []string, flow []layers.Wire, lines []*journal.Line) {
	g.Grouped = true
	words := make([]string, len(calls))
	for _, line := range lines {
		if line.Position <= len(words) {
			words[line.Position-1] = line.Word
		}
	}
	index, counts, tool := map[string]int{}, []map[string]int{}, make([]int, len(calls))
	var tools []string
	for call, name := range calls {
		i, known := index[name]
		if !known {
			i = len(tools)
			index[name], tools, counts = i, append(tools, name), append(counts, map[string]int{})
		}
		tool[call] = i
		counts[i][words[call]]++
	}
	for i, name := range tools {
		total, text, word := 0, []string{}, ""
		for _, n := range counts[i] {
			total += n
		}
		for _, w := range callWords {
			if n := counts[i][w]; n > 0 {
				text = append(text, shape(w)+" "+numeral.Thousands(int64(n)))
				if word == "" {
					word = w
				}
			}
		}
		g.Nodes = append(g.Nodes, graphNode{
			ID: fmt.Sprintf("node-%d", i), Title: fmt.Sprintf("%s ×%s", name, numeral.Thousands(int64(total))), Note: strings.Join(text, "  "), Word: word,
			Query: g.With("tab", tabCalls, "tool", name),
		})
	}
	var wires []layers.Wire
	paths := map[layers.Wire][]string{}
	for _, w := range flow {
		wire := layers.Wire{From: tool[w.From], To: tool[w.To]}
		if _, known := paths[wire]; wire.From != wire.To && !known {
			wires = append(wires, wire)
			paths[wire] = nil
		}
	}
	g.place(wires, paths, nil)
}

// place gives nodes and wires their places.
func (g *graphView) place(wires []layers.Wire, paths map[layers.Wire][]string, dashed map[layers.Wire]bool) {
	places := layers.Arrange(len(g.Nodes), wires)
	rows := map[int]int{}
	most := 0
	for _, at := range places {
		rows[at.Layer] = max(rows[at.Layer], at.Row+1)
		most = max(most, rows[at.Layer])
	}
	g.Width = 2*margin + len(rows)*(nodeWidth+gapAcross) - gapAcross
	g.Height = 2*margin + most*(nodeHeight+gapDown) - gapDown
	for i, at := range places {
		lower := (most - rows[at.Layer]) * (nodeHeight + gapDown) / 2 // a short layer stands in the middle
		g.Nodes[i].X = margin + at.Layer*(nodeWidth+gapAcross)
		g.Nodes[i].Y = margin + lower + at.Row*(nodeHeight+gapDown)
	}
	for _, w := range wires {
		from, to := g.Nodes[w.From], g.Nodes[w.To]
		x1, y1, x2, y2 := from.X+nodeWidth, from.Y+nodeHeight/2, to.X, to.Y+nodeHeight/2
		middle := (x1 + x2) / 2
		wire := graphWire{
			Curve: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, middle, y1, middle, y2, x2, y2), X: (x1 + x2) / 2, Y: (y1+y2)/2 - 5,
			Path: cutText(strings.Join(paths[w], ", "), 22), Dashed: dashed[w], From: from.ID, To: to.ID,
		}
		if x2-x1 > gapAcross { // it passes other layers: its text stands where it begins
			wire.X, wire.Y = x1+gapAcross/2, y1-5
		}
		g.Wires = append(g.Wires, wire)
	}
}
