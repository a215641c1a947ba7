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
		Use:   "graph [PLAN]",
		Short: "show how a plan's calls depend on each other",
		Long: `Show a plan's data-flow graph: what each call reads, which calls that comes from,
and where it writes, with alternatives (||) and fan-outs (&&). The context is
taken for empty unless -c names one.

Without a plan, show the newest that a context ran, the latest unless -c names
one, as it ran: what was done, failed, skipped or waits, how long it took, and
where it wrote.`,
		Example: `  obelus graph plans/refund.lua --format dot | dot -Tsvg > refund.svg
  obelus graph --context order-7`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completePlans,
		RunE: func(c *cobra.Command, args []string) error {
			draw, ok := graphFormats[format]
			switch {
			case !ok:
				return &usageError{fmt.Sprintf("--format %s: it is text, mermaid or dot", format)}
			case a.json && c.Flags().Changed("format"):
				return &usageError{"--json and --format: give one of them"}
			case len(args) == 0:
				return a.graphRan(c.Context(), draw)
			}
			return a.graph(c.Context(), args[0], draw)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "`FORMAT`: text, mermaid or dot")
	return c
}

// drawing draws a plan, and how its calls came out, by position, where they did.
type drawing func(plan *engine.Plan, ran map[int]engine.Record) string

var graphFormats = map[string]drawing{"dot": drawDOT, "mermaid": drawMermaid, "text": drawText}

// graphRan shows a plan as it ran.
func (a *app) graphRan(ctx context.Context, draw drawing) error {
	run, err := a.openLastRun(ctx)
	if err != nil {
		return err
	}
	plan, records, err := (&engine.Runner{Log: a.log, Registry: run.registry}).Recorded(ctx, run.context)
	if err != nil {
		return err
	}
	ran := map[int]engine.Record{}
	for _, r := range records {
		ran[r.Position] = r
	}
	if a.json {
		return a.graphJSON(plan, ran)
	}
	return a.term.line(strings.TrimRight(draw(plan, ran), "\n"))
}

func (a *app) graph(ctx context.Context, file string, draw drawing) error {
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
		return a.graphJSON(plan, nil)
	}
	return a.term.line(strings.TrimRight(draw(plan, nil), "\n"))
}

// graphJSON prints a line for each call, and one for each wire.
func (a *app) graphJSON(plan *engine.Plan, ran map[int]engine.Record) error {
	for _, c := range plan.Calls {
		line := map[string]any{"call": c.Position, "tool": c.Tool, "reads": texts(c.Reads()), "scopes": texts(c.Scopes()), "writes": ""}
		if c.Output != nil {
			line["writes"] = c.Output.Source
		}
		if c.Instance != "" {
			line["instance"] = c.Instance
		}
		if r, ok := ran[c.Position]; ok {
			line["status"], line["duration_ms"], line["wrote"] = r.Status, r.Duration, append([]string{}, r.Writes...)
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
func drawText(plan *engine.Plan, ran map[int]engine.Record) string {
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
		fmt.Fprintf(&b, "%d %s", c.Position, titled(c.Tool, c.Instance))
		if how := outcome(ran, c.Position); how != "" {
			b.WriteString("  " + how)
		}
		b.WriteByte('\n')
		for _, path := range c.Reads() {
			source := "the context"
			if calls := from[c.Position][path.String()]; len(calls) > 0 {
				source = "call " + strings.Join(calls, ", ")
			}
			fmt.Fprintf(&b, "    reads  %s  from %s\n", printable(path.String()), source)
		}
		for _, scope := range c.Scopes() {
			fmt.Fprintf(&b, "    sees   %s\n", printable(scope.String()))
		}
		if calls := after[c.Position]; len(calls) > 0 {
			fmt.Fprintf(&b, "    after  call %s\n", strings.Join(calls, ", "))
		}
		fmt.Fprintf(&b, "    writes %s\n", writes(c))
		if r := ran[c.Position]; len(r.Writes) > 0 {
			fmt.Fprintf(&b, "    wrote  %s\n", printable(strings.Join(r.Writes, " ")))
		}
	}
	return b.String()
}

// outcome is how a call came out: its status, and how long it took or why not.
func outcome(ran map[int]engine.Record, position int) string {
	r, ok := ran[position]
	if !ok {
		return ""
	}
	text := string(r.Status)
	message, _ := r.Error["message"].(string)
	switch {
	case r.Started != "" && r.Status.Settled():
		text += " in " + duration(took(r))
	case len(r.WaitingOn) > 0:
		text += " for " + printable(strings.Join(r.WaitingOn, " "))
	}
	if message != "" {
		text += ": " + printable(firstLine(message))
	}
	return text
}

// statusColours are those of drawn calls, for light and dark paper alike.
var statusColours = map[engine.Status]string{
	engine.Done: "#2e7d32", engine.Failed: "#c62828", engine.Skipped: "#9e9e9e", engine.Waiting: "#ef6c00", engine.Held: "#ef6c00",
	engine.InDoubt: "#c62828", engine.Running: "#1565c0", engine.Cancelled: "#6a1b9a",
}

// writes is a call's output path as written, on one line, its alternatives and fan-outs.
func writes(c *engine.Call) string {
	if c.Output == nil {
		return "nothing"
	}
	text := printable(strings.ReplaceAll(c.Output.Source, "\n", " "))
	if c.Method != "" {
		text += "  by " + string(c.Method)
	}
	return text
}

// titled is a call's tool, and the instance that it is for.
func titled(tool, instance string) string { return printable(strings.TrimSpace(tool + " " + instance)) }

func drawMermaid(plan *engine.Plan, ran map[int]engine.Record) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, c := range plan.Calls {
		how := outcome(ran, c.Position)
		if how != "" {
			how = "<br/>" + mermaidText(how)
		}
		fmt.Fprintf(&b, "  c%d[\"%d %s<br/>%s%s\"]\n", c.Position, c.Position, mermaidText(titled(c.Tool, c.Instance)), mermaidText(writes(c)), how)
		if colour, ok := statusColours[ran[c.Position].Status]; ok {
			fmt.Fprintf(&b, "  style c%d stroke:%s,stroke-width:2px\n", c.Position, colour)
		}
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
	return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "&", "#amp;").Replace(printable(text))
}

func drawDOT(plan *engine.Plan, ran map[int]engine.Record) string {
	var b strings.Builder
	b.WriteString("digraph plan {\n  node [shape=box];\n")
	for _, c := range plan.Calls {
		how, style := outcome(ran, c.Position), ""
		if how != "" {
			how = `\n` + dotText(how)
		}
		if colour, ok := statusColours[ran[c.Position].Status]; ok {
			style = fmt.Sprintf(", color=\"%s\"", colour)
		}
		fmt.Fprintf(&b, "  c%d [label=\"%d %s\\n%s%s\"%s];\n", c.Position, c.Position, dotText(titled(c.Tool, c.Instance)), dotText(writes(c)), how, style)
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

func dotText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable(text))
}
