package view

import (
	"fmt"
	"slices"
	"strings"

	"obelus/cmd/internal/human"
	"obelus/engine/journal"
	"obelus/engine/plan"
)

// Graph is a plan to be drawn, with the records of its calls by position, if it has run. A run of
// several ticks has one for each.
type Graph struct {
	Plan *plan.Plan
	Ran  map[int]journal.Record
	Tick int // the tick; 0 for a plan that is drawn alone
}

// name returns a call's name in the drawing: its position, after the tick if there are several.
func (d Graph) name(position int) string {
	if d.Tick == 0 {
		return fmt.Sprint(position)
	}
	return fmt.Sprintf("%d.%d", d.Tick, position)
}

// id returns a call's identifier in the drawing.
func (d Graph) id(position int) string { return "c" + strings.ReplaceAll(d.name(position), ".", "_") }

// Format draws graphs as text in some format.
type Format func(all []Graph) string

// Formats are the formats by name.
var Formats = map[string]Format{"dot": DOT, "mermaid": Mermaid, "text": Text}

// Text lists calls with the paths that they read, the calls those come from, and the paths that
// they write.
func Text(all []Graph) string {
	var b strings.Builder
	for i, one := range all {
		if one.Tick != 0 {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "tick %d%s\n", one.Tick, emptyNote(one.Plan))
		}
		writeText(&b, one)
	}
	return b.String()
}

// emptyNote returns a note for a plan without calls.
func emptyNote(plan *plan.Plan) string {
	if len(plan.Calls) == 0 {
		return ": no calls"
	}
	return ""
}

func writeText(b *strings.Builder, d Graph) {
	from := map[int]map[string][]string{}
	after := map[int][]string{}
	for _, w := range d.Plan.Wires() {
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
	for _, c := range d.Plan.Calls {
		fmt.Fprintf(b, "%s %s", d.name(c.Position), Title(c.Tool, c.Instance))
		if how := outcome(d.Ran, c.Position); how != "" {
			b.WriteString("  " + how)
		}
		b.WriteByte('\n')
		for _, t := range timing(c) {
			fmt.Fprintf(b, "    %-6s %s\n", t.word, t.text)
		}
		for _, path := range c.Reads() {
			source := "the context"
			if calls := from[c.Position][path.String()]; len(calls) > 0 {
				source = "call " + strings.Join(calls, ", ")
			}
			fmt.Fprintf(b, "    reads  %s  from %s\n", human.Printable(path.String()), source)
		}
		for _, scope := range c.Scopes() {
			fmt.Fprintf(b, "    sees   %s\n", human.Printable(scope.String()))
		}
		if calls := after[c.Position]; len(calls) > 0 {
			fmt.Fprintf(b, "    after  call %s\n", strings.Join(calls, ", "))
		}
		fmt.Fprintf(b, "    writes %s\n", writes(c))
		if r := d.Ran[c.Position]; len(r.Writes) > 0 {
			fmt.Fprintf(b, "    wrote  %s\n", human.Printable(strings.Join(r.Writes, " ")))
		}
	}
}

// outcome returns a call's status, with its duration or its error.
func outcome(ran map[int]journal.Record, position int) string {
	r, ok := ran[position]
	if !ok {
		return ""
	}
	text := r.Outcome()
	message, _ := r.Error["message"].(string)
	if r.Handled != nil {
		message = HandledFailure(r)
	}
	switch {
	case r.Started != "" && r.Status.Settled():
		text += " in " + human.Duration(Elapsed(r))
	case r.Status == journal.Skipped && r.If != nil:
		text += ": " + human.Printable(r.Reason)
	case Until(r) != "":
		text += " " + Until(r)
	case len(r.WaitingOn) > 0:
		text += " for " + human.Printable(strings.Join(r.WaitingOn, " "))
	}
	if message != "" {
		text += ": " + human.Printable(human.FirstLine(message))
	}
	return text
}

// outcomeColours are the colours of drawn calls, for light and dark backgrounds.
var outcomeColours = map[string]string{
	string(journal.Done): "#2e7d32", string(journal.Failed): "#c62828", string(journal.Skipped): "#9e9e9e", string(journal.Waiting): "#ef6c00",
	string(journal.Held): "#ef6c00", string(journal.InDoubt): "#c62828", string(journal.Running): "#1565c0", string(journal.Interrupted): "#6a1b9a",
	string(journal.Cancelled): "#6a1b9a", journal.OutcomeHandled: "#f9a825", journal.OutcomeRejected: "#ad1457",
}

// term is a property of a call that says whether or when it runs.
type term struct{ word, text string }

// timing returns the terms of a call.
func timing(c *plan.Call) (terms []term) {
	add := func(word string, v any) { terms = append(terms, term{word, human.Printable(fmt.Sprint(v))}) }
	if condition, ok := c.Issued["_if"]; ok {
		add("if", condition)
	}
	if c.Schedule != nil {
		add(c.Schedule.Name[1:], c.Issued[c.Schedule.Name])
	}
	if len(c.After) > 0 {
		add("after", strings.Join(texts(c.After), " "))
	}
	return terms
}

// writes returns a call's output path as written, on one line.
func writes(c *plan.Call) string {
	if c.Output == nil {
		return "nothing"
	}
	text := human.Printable(strings.ReplaceAll(c.Output.Source, "\n", " "))
	if c.Method != "" {
		text += "  by " + string(c.Method)
	}
	return text
}

// Mermaid draws graphs for Mermaid.
func Mermaid(all []Graph) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	writeTicks(&b, all, writeMermaid, "  subgraph r%d[\"tick %[1]d%s\"]\n", "  end\n")
	return b.String()
}

// writeTicks draws each graph, within a frame for its tick if it has one.
func writeTicks(b *strings.Builder, all []Graph, draw func(*strings.Builder, Graph), opening, closing string) {
	for _, d := range all {
		if d.Tick != 0 {
			fmt.Fprintf(b, opening, d.Tick, emptyNote(d.Plan))
		}
		draw(b, d)
		if d.Tick != 0 {
			b.WriteString(closing)
		}
	}
}

func writeMermaid(b *strings.Builder, d Graph) {
	for _, c := range d.Plan.Calls {
		how := outcome(d.Ran, c.Position)
		if how != "" {
			how = "<br/>" + mermaidText(how)
		}
		title := mermaidText(Title(c.Tool, c.Instance))
		for _, t := range timing(c) {
			title += "<br/>" + mermaidText(t.word+" "+t.text)
		}
		fmt.Fprintf(b, "  %s[\"%s %s<br/>%s%s\"]\n", d.id(c.Position), d.name(c.Position), title, mermaidText(writes(c)), how)
		if colour, ok := outcomeColours[d.Ran[c.Position].Outcome()]; ok {
			fmt.Fprintf(b, "  style %s stroke:%s,stroke-width:2px\n", d.id(c.Position), colour)
		}
	}
	for _, w := range d.Plan.Wires() {
		arrow := "-->"
		if w.Order {
			arrow = "-.->"
		}
		fmt.Fprintf(b, "  %s %s|\"%s\"| %s\n", d.id(w.From), arrow, mermaidText(w.Path.String()), d.id(w.To))
	}
}

func mermaidText(text string) string {
	return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "&", "#amp;").Replace(human.Printable(text))
}

// DOT draws graphs for Graphviz.
func DOT(all []Graph) string {
	var b strings.Builder
	b.WriteString("digraph plan {\n  node [shape=box];\n")
	writeTicks(&b, all, writeDOT, "  subgraph cluster_%d {\n  label=\"tick %[1]d%s\";\n", "  }\n")
	b.WriteString("}\n")
	return b.String()
}

func writeDOT(b *strings.Builder, d Graph) {
	for _, c := range d.Plan.Calls {
		how, style := outcome(d.Ran, c.Position), ""
		if how != "" {
			how = `\n` + dotText(how)
		}
		if colour, ok := outcomeColours[d.Ran[c.Position].Outcome()]; ok {
			style = fmt.Sprintf(", color=\"%s\"", colour)
		}
		title := dotText(Title(c.Tool, c.Instance))
		for _, t := range timing(c) {
			title += `\n` + dotText(t.word+" "+t.text)
		}
		fmt.Fprintf(b, "  %s [label=\"%s %s\\n%s%s\"%s];\n", d.id(c.Position), d.name(c.Position), title, dotText(writes(c)), how, style)
	}
	for _, w := range d.Plan.Wires() {
		style := ""
		if w.Order {
			style = ", style=dashed"
		}
		fmt.Fprintf(b, "  %s -> %s [label=\"%s\"%s];\n", d.id(w.From), d.id(w.To), dotText(w.Path.String()), style)
	}
}

func dotText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(human.Printable(text))
}
