package view

import (
	"fmt"
	"strings"

	"obelus/cmd/internal/human"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// Why draws an explanation as a tree, its lines cut at a width.
func Why(why history.Why, width int) string {
	var b strings.Builder
	writeValue(&b, why, "", "", width)
	return b.String()
}

// writeValue draws a value with its origins below it. first stands before its own line, and rest
// before the lines below.
func writeValue(b *strings.Builder, why history.Why, first, rest string, width int) {
	text := why.Ref
	if why.Context != "" {
		text = why.Context + ": " + text
	}
	switch {
	case why.Missing:
		text += " was missing"
	case why.Again:
		text += " (see above)"
	default:
		text += " = " + string(store.EncodeJSON(why.Value))
	}
	b.WriteString(human.Cut(first+human.Printable(text), width) + "\n")
	var parts []part
	for _, origin := range why.From {
		parts = append(parts, func(first, rest string) { writeOrigin(b, origin, first, rest, width) })
	}
	writeParts(parts, rest)
}

// writeOrigin draws one message that a value is made of.
func writeOrigin(b *strings.Builder, o history.Origin, first, rest string, width int) {
	text := fmt.Sprintf("#%d ", o.Seq)
	switch {
	case o.Call == "":
		text += "came from outside: " + o.Path
	default:
		text += fmt.Sprintf("call %s (%s) wrote %s", o.Call, o.Tool, o.Path)
	}
	if o.Method != "" {
		text += " by " + string(o.Method)
	}
	if o.Misfit {
		text += ", which does not fit: as if nothing were there"
	}
	if o.Again {
		text += " (see above)"
	}
	switch {
	case o.Given:
		text += ", as a person knew"
	case o.Handled != nil && o.Handled["code"] == journal.Rejected:
		text += fmt.Sprintf(": rejected by %s: %s", o.Name(), o.Handled["message"])
	case o.Handled != nil:
		text += fmt.Sprintf(": it had failed: %s", o.Handled["message"])
	}
	if o.Answered != nil && !o.Given {
		text += ", " + o.Answered.String()
	}
	b.WriteString(human.Cut(first+human.Printable(text), width) + "\n")
	var parts []part
	for _, argument := range SortedNames(o.Corrected) {
		text := human.Printable(argument + " = " + o.Correction(argument))
		parts = append(parts, func(first, _ string) { b.WriteString(human.Cut(first+human.Printable(text), width) + "\n") })
	}
	if o.SetAside != nil {
		parts = append(parts, func(first, _ string) {
			b.WriteString(human.Cut(first+human.Printable(o.SetAside.String()+": "+string(o.SetAside.Value)), width) + "\n")
		})
	}
	if o.If != nil {
		text := fmt.Sprintf("its _if held: %v", o.If)
		parts = append(parts, func(first, _ string) { b.WriteString(human.Cut(first+human.Printable(text), width) + "\n") })
	}
	for _, read := range o.Reads {
		parts = append(parts, func(first, rest string) { writeValue(b, read, first, rest, width) })
	}
	if p := o.Planned; p != nil {
		parts = append(parts, func(first, rest string) { writePlanned(b, *p, first, rest, width) })
	}
	writeParts(parts, rest)
}

// writePlanned draws the arguments that a plan's function computed, with the data that it saw.
func writePlanned(b *strings.Builder, p history.Planned, first, rest string, width int) {
	by := "the plan's function"
	if p.ByModel {
		by = "the model that planned"
	}
	text := strings.Join(p.Arguments, ", ") + " given by " + by
	if len(p.Saw) > 0 {
		text += ", which saw"
	}
	b.WriteString(human.Cut(first+human.Printable(text), width) + "\n")
	var parts []part
	for _, saw := range p.Saw {
		parts = append(parts, func(first, rest string) { writeValue(b, saw, first, rest, width) })
	}
	writeParts(parts, rest)
}

// part draws the lines below a line. first stands before its own line, and rest before the lines
// below.
type part func(first, rest string)

func writeParts(parts []part, rest string) {
	for i, draw := range parts {
		branch, below := "├─ ", "│  "
		if i == len(parts)-1 {
			branch, below = "└─ ", "   "
		}
		draw(rest+branch, rest+below)
	}
}
