package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

func graphCommand(a *app) *cobra.Command {
	format := ""
	c := &cobra.Command{
		Use:   "graph [PLAN]",
		Short: "show how a plan's calls depend on each other",
		Long: `Show a plan's data-flow graph: what each call reads, which calls that comes from,
and where it writes, with alternatives (||) and fan-outs (&&). The context is
taken for empty unless -c names one.

Without a plan, show the newest that a context ran, the latest unless -c names
one, as it ran: what was done, failed, skipped or waits, how long it took, and
where it wrote. Of a plan that is a function all rounds are shown.`,
		Example: `  obelus graph plans/refund.lua --format dot | dot -Tsvg > refund.svg
  obelus graph --context order-7`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completePlans,
		RunE: func(c *cobra.Command, args []string) error {
			draw, ok := graphFormats[format]
			switch {
			case !ok:
				return exit.Usagef("--format %s: it is text, mermaid or dot", format)
			case a.json && c.Flags().Changed("format"):
				return exit.Usage("--json and --format: give one of them")
			case len(args) == 0:
				return graphLastRun(c.Context(), a, draw)
			}
			return graphPlan(c.Context(), a, args[0], draw)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "`FORMAT`: text, mermaid or dot")
	return c
}

// drawn is a plan that is drawn, with how its calls came out, by position, where they did.
// Of a run of several rounds each is one.
type drawn struct {
	plan  *plan.Plan
	ran   map[int]journal.Record
	round int // its tick; 0 for a plan that is drawn alone
}

// name is a call's name in what is drawn: its position, with the tick of a round before it.
func (d drawn) name(position int) string {
	if d.round == 0 {
		return fmt.Sprint(position)
	}
	return fmt.Sprintf("%d.%d", d.round, position)
}

// id is a call's name within a drawing.
func (d drawn) id(position int) string { return "c" + strings.ReplaceAll(d.name(position), ".", "_") }

type drawing func(all []drawn) string

var graphFormats = map[string]drawing{"dot": drawDOT, "mermaid": drawMermaid, "text": drawText}

// graphLastRun shows a plan as it ran.
func graphLastRun(ctx context.Context, a *app, draw drawing) error {
	run, err := a.openLastRun(ctx)
	if err != nil {
		return err
	}
	rounds, err := (&engine.Runner{Log: a.log, Registry: run.registry}).Rounds(ctx, run.context)
	if err != nil {
		return err
	}
	var all []drawn
	for _, round := range rounds {
		one := drawn{plan: round.Plan, ran: map[int]journal.Record{}}
		if len(rounds) > 1 {
			one.round = round.Tick
		}
		for _, r := range round.Calls {
			one.ran[r.Position] = r
		}
		all = append(all, one)
	}
	return printGraph(a, draw, all)
}

// printGraph prints plans as they are wanted.
func printGraph(a *app, draw drawing, all []drawn) error {
	if !a.json {
		return a.term.line(strings.TrimRight(draw(all), "\n"))
	}
	for _, one := range all {
		if err := printGraphJSON(a, one); err != nil {
			return err
		}
	}
	return nil
}

func graphPlan(ctx context.Context, a *app, file string, draw drawing) error {
	request, registry, err := openPlan(a, file)
	if err != nil {
		return err
	}
	if request.Planner != nil {
		return exit.Usagef("%s gives its calls by a function, one tick after another: there is no graph before it is asked", file)
	}
	log, name, err := contextToCheck(ctx, a)
	if err != nil {
		return err
	}
	runner := &engine.Runner{Log: log, Registry: registry}
	plan, err := runner.Check(ctx, engine.Start{Context: name, Request: request})
	if err != nil {
		return err
	}
	return printGraph(a, draw, []drawn{{plan: plan}})
}

// printGraphJSON prints a line for each call, and one for each wire.
func printGraphJSON(a *app, d drawn) error {
	for _, c := range d.plan.Calls {
		line := map[string]any{"call": c.Position, "tool": c.Tool, "reads": texts(c.Reads()), "scopes": texts(c.Scopes()), "writes": ""}
		if c.Output != nil {
			line["writes"] = c.Output.Source
		}
		if c.Instance != "" {
			line["instance"] = c.Instance
		}
		if d.round != 0 {
			line["tick"] = d.round
		}
		if r, ok := d.ran[c.Position]; ok {
			line["status"], line["duration_ms"], line["wrote"] = r.Status, r.Duration, append([]string{}, r.Writes...)
			if r.Handled != nil {
				line["handled"] = r.Handled
			}
		}
		if err := a.term.ndjson(line); err != nil {
			return err
		}
	}
	for _, w := range d.plan.Wires() {
		line := map[string]any{"from": w.From, "to": w.To, "path": w.Path.String(), "order": w.Order}
		if d.round != 0 {
			line["tick"] = d.round
		}
		if err := a.term.ndjson(line); err != nil {
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
func drawText(all []drawn) string {
	var b strings.Builder
	for i, one := range all {
		if one.round != 0 {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "round %d%s\n", one.round, without(one.plan))
		}
		drawTextOf(&b, one)
	}
	return b.String()
}

// without says of a plan that it has no calls.
func without(plan *plan.Plan) string {
	if len(plan.Calls) == 0 {
		return ": no calls"
	}
	return ""
}

func drawTextOf(b *strings.Builder, d drawn) {
	from := map[int]map[string][]string{}
	after := map[int][]string{}
	for _, w := range d.plan.Wires() {
		if w.Order {
			if n := d.name(w.From); !slices.Contains(after[w.To], n) {
				after[w.To] = append(after[w.To], n)
			}
			continue
		}
		if from[w.To] == nil {
			from[w.To] = map[string][]string{}
		}
		from[w.To][w.Path.String()] = append(from[w.To][w.Path.String()], d.name(w.From))
	}
	for _, c := range d.plan.Calls {
		fmt.Fprintf(b, "%s %s", d.name(c.Position), titled(c.Tool, c.Instance))
		if how := outcome(d.ran, c.Position); how != "" {
			b.WriteString("  " + how)
		}
		b.WriteByte('\n')
		for _, path := range c.Reads() {
			source := "the context"
			if calls := from[c.Position][path.String()]; len(calls) > 0 {
				source = "call " + strings.Join(calls, ", ")
			}
			fmt.Fprintf(b, "    reads  %s  from %s\n", printable(path.String()), source)
		}
		for _, scope := range c.Scopes() {
			fmt.Fprintf(b, "    sees   %s\n", printable(scope.String()))
		}
		if calls := after[c.Position]; len(calls) > 0 {
			fmt.Fprintf(b, "    after  call %s\n", strings.Join(calls, ", "))
		}
		fmt.Fprintf(b, "    writes %s\n", writes(c))
		if r := d.ran[c.Position]; len(r.Writes) > 0 {
			fmt.Fprintf(b, "    wrote  %s\n", printable(strings.Join(r.Writes, " ")))
		}
	}
}

// outcome is how a call came out: its status, and how long it took or why not.
func outcome(ran map[int]journal.Record, position int) string {
	r, ok := ran[position]
	if !ok {
		return ""
	}
	text := r.Outcome()
	message, _ := r.Error["message"].(string)
	if r.Handled != nil {
		message = handled(r)
	}
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

// outcomeColours are those of drawn calls, for light and dark paper alike.
var outcomeColours = map[string]string{
	string(journal.Done): "#2e7d32", string(journal.Failed): "#c62828", string(journal.Skipped): "#9e9e9e", string(journal.Waiting): "#ef6c00",
	string(journal.Held): "#ef6c00", string(journal.InDoubt): "#c62828", string(journal.Running): "#1565c0", string(journal.Interrupted): "#6a1b9a",
	string(journal.Cancelled): "#6a1b9a", journal.OutcomeHandled: "#f9a825", journal.OutcomeRejected: "#ad1457",
}

// writes is a call's output path as written, on one line, its alternatives and fan-outs.
func writes(c *plan.Call) string {
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

func drawMermaid(all []drawn) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, d := range all {
		if d.round != 0 {
			fmt.Fprintf(&b, "  subgraph r%d[\"round %[1]d%s\"]\n", d.round, without(d.plan))
		}
		drawMermaidOf(&b, d)
		if d.round != 0 {
			b.WriteString("  end\n")
		}
	}
	return b.String()
}

func drawMermaidOf(b *strings.Builder, d drawn) {
	for _, c := range d.plan.Calls {
		how := outcome(d.ran, c.Position)
		if how != "" {
			how = "<br/>" + mermaidText(how)
		}
		fmt.Fprintf(b, "  %s[\"%s %s<br/>%s%s\"]\n", d.id(c.Position), d.name(c.Position), mermaidText(titled(c.Tool, c.Instance)), mermaidText(writes(c)), how)
		if colour, ok := outcomeColours[d.ran[c.Position].Outcome()]; ok {
			fmt.Fprintf(b, "  style %s stroke:%s,stroke-width:2px\n", d.id(c.Position), colour)
		}
	}
	for _, w := range d.plan.Wires() {
		arrow := "-->"
		if w.Order {
			arrow = "-.->"
		}
		fmt.Fprintf(b, "  %s %s|\"%s\"| %s\n", d.id(w.From), arrow, mermaidText(w.Path.String()), d.id(w.To))
	}
}

func mermaidText(text string) string {
	return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "&", "#amp;").Replace(printable(text))
}

func drawDOT(all []drawn) string {
	var b strings.Builder
	b.WriteString("digraph plan {\n  node [shape=box];\n")
	for _, d := range all {
		if d.round != 0 {
			fmt.Fprintf(&b, "  subgraph cluster_%d {\n  label=\"round %[1]d%s\";\n", d.round, without(d.plan))
		}
		drawDOTOf(&b, d)
		if d.round != 0 {
			b.WriteString("  }\n")
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func drawDOTOf(b *strings.Builder, d drawn) {
	for _, c := range d.plan.Calls {
		how, style := outcome(d.ran, c.Position), ""
		if how != "" {
			how = `\n` + dotText(how)
		}
		if colour, ok := outcomeColours[d.ran[c.Position].Outcome()]; ok {
			style = fmt.Sprintf(", color=\"%s\"", colour)
		}
		fmt.Fprintf(b, "  %s [label=\"%s %s\\n%s%s\"%s];\n", d.id(c.Position), d.name(c.Position), dotText(titled(c.Tool, c.Instance)), dotText(writes(c)), how, style)
	}
	for _, w := range d.plan.Wires() {
		style := ""
		if w.Order {
			style = ", style=dashed"
		}
		fmt.Fprintf(b, "  %s -> %s [label=\"%s\"%s];\n", d.id(w.From), d.id(w.To), dotText(w.Path.String()), style)
	}
}

func dotText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable(text))
}
