package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/engine"
	"obelus/store"
)

func (a *app) graphCommand() *cobra.Command {
	format := ""
	c := &cobra.Command{
		Use:   "graph PLAN",
		Short: "show how a plan's calls depend on each other",
		Long: `Show a plan's data-flow graph: what each call reads, which calls that comes from,
and where it writes, with alternatives (||) and fan-outs (&&). The context is
taken for empty unless -c names one.`,
		Example:           "  obelus graph plans/refund.lua --format dot | dot -Tsvg > refund.svg",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePlans,
		RunE:              func(c *cobra.Command, args []string) error { return a.graph(c.Context(), args[0], format) },
	}
	c.Flags().StringVar(&format, "format", "text", "`FORMAT`: text, mermaid or dot")
	return c
}

var graphFormats = map[string]func(*engine.Plan) string{"dot": drawDOT, "mermaid": drawMermaid, "text": drawText}

func (a *app) graph(ctx context.Context, file, format string) error {
	draw, ok := graphFormats[format]
	if !ok {
		return &usageError{fmt.Sprintf("--format %s: it is text, mermaid or dot", format)}
	}
	request, registry, err := a.openPlan(file)
	if err != nil {
		return err
	}
	if request.Planner != nil {
		return &usageError{fmt.Sprintf("%s gives its calls by a function, one tick after another: there is no graph before it is asked", file)}
	}
	log, name, err := a.checkedContext(ctx)
	if err != nil {
		return err
	}
	runner := &engine.Runner{Log: log, Registry: registry}
	plan, err := runner.Check(ctx, engine.Start{Context: name, Request: request})
	if err != nil {
		return err
	}
	if a.json {
		return a.graphJSON(plan)
	}
	return a.term.line(strings.TrimRight(draw(plan), "\n"))
}

// graphJSON prints a line for each call, and one for each wire.
func (a *app) graphJSON(plan *engine.Plan) error {
	for _, c := range plan.Calls {
		line := map[string]any{"call": c.Position, "tool": c.Tool, "reads": texts(c.Reads()), "scopes": texts(c.Scopes()), "writes": ""}
		if c.Output != nil {
			line["writes"] = c.Output.Source
		}
		if err := a.term.ndjson(line); err != nil {
			return err
		}
	}
	for _, w := range plan.Wires() {
		if err := a.term.ndjson(map[string]any{"from": w.From, "to": w.To, "path": w.Path.String(), "order": w.Order}); err != nil {
			return err
		}
	}
	return nil
}

func texts(paths []store.Path) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = path.String()
	}
	return all
}

// drawText lists the calls with what they read and from whom, and where they
// write.
func drawText(plan *engine.Plan) string {
	from := map[int]map[string][]string{}
	after := map[int][]string{}
	for _, w := range plan.Wires() {
		if w.Order {
			if n := fmt.Sprint(w.From); !slices.Contains(after[w.To], n) {
				after[w.To] = append(after[w.To], n)
			}
			continue
		}
		if from[w.To] == nil {
			from[w.To] = map[string][]string{}
		}
		from[w.To][w.Path.String()] = append(from[w.To][w.Path.String()], fmt.Sprint(w.From))
	}
	var b strings.Builder
	for _, c := range plan.Calls {
		fmt.Fprintf(&b, "%d %s", c.Position, c.Tool)
		if c.Instance != "" {
			fmt.Fprintf(&b, " %s", c.Instance)
		}
		b.WriteByte('\n')
		for _, path := range c.Reads() {
			source := "the context"
			if calls := from[c.Position][path.String()]; len(calls) > 0 {
				source = "call " + strings.Join(calls, ", ")
			}
			fmt.Fprintf(&b, "    reads  %s  from %s\n", path, source)
		}
		for _, scope := range c.Scopes() {
			fmt.Fprintf(&b, "    sees   %s\n", scope)
		}
		if calls := after[c.Position]; len(calls) > 0 {
			fmt.Fprintf(&b, "    after  call %s\n", strings.Join(calls, ", "))
		}
		fmt.Fprintf(&b, "    writes %s\n", writes(c))
	}
	return b.String()
}

// writes is a call's output path as written, its alternatives and fan-outs.
func writes(c *engine.Call) string {
	if c.Output == nil {
		return "nothing"
	}
	text := c.Output.Source
	if c.Method != "" {
		text += "  by " + string(c.Method)
	}
	return text
}

func drawMermaid(plan *engine.Plan) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, c := range plan.Calls {
		fmt.Fprintf(&b, "  c%d[\"%d %s<br/>%s\"]\n", c.Position, c.Position, mermaidText(c.Tool), mermaidText(writes(c)))
	}
	for _, w := range plan.Wires() {
		arrow := "-->"
		if w.Order {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  c%d %s|\"%s\"| c%d\n", w.From, arrow, mermaidText(w.Path.String()), w.To)
	}
	return b.String()
}

func mermaidText(text string) string {
	return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(text)
}

func drawDOT(plan *engine.Plan) string {
	var b strings.Builder
	b.WriteString("digraph plan {\n  node [shape=box];\n")
	for _, c := range plan.Calls {
		fmt.Fprintf(&b, "  c%d [label=\"%d %s\\n%s\"];\n", c.Position, c.Position, dotText(c.Tool), dotText(writes(c)))
	}
	for _, w := range plan.Wires() {
		style := ""
		if w.Order {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  c%d -> c%d [label=\"%s\"%s];\n", w.From, w.To, dotText(w.Path.String()), style)
	}
	b.WriteString("}\n")
	return b.String()
}

func dotText(text string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) }
