package cmd

import (
	"fmt"
	"strings"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// drawWhy is an explanation as a tree, its lines cut at a width.
func drawWhy(why history.Why, width int) string {
	var b strings.Builder
	drawValue(&b, why, "", "", width)
	return b.String()
}

// drawValue draws a value with what it is made of below it; first stands before
// its own line, and rest before those below.
func drawValue(b *strings.Builder, why history.Why, first, rest string, width int) {
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
	b.WriteString(cut(first+printable(text), width) + "\n")
	var parts []part
	for _, origin := range why.From {
		parts = append(parts, func(first, rest string) { drawOrigin(b, origin, first, rest, width) })
	}
	drawParts(parts, rest)
}

func drawOrigin(b *strings.Builder, o history.Origin, first, rest string, width int) {
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
	b.WriteString(cut(first+printable(text), width) + "\n")
	var parts []part
	for _, argument := range sorted(o.Corrected) {
		text := fmt.Sprintf("%s = %s, corrected by %s", argument, shown(o.Corrected[argument]), printable(o.Name()))
		parts = append(parts, func(first, _ string) { b.WriteString(cut(first+printable(text), width) + "\n") })
	}
	for _, read := range o.Reads {
		parts = append(parts, func(first, rest string) { drawValue(b, read, first, rest, width) })
	}
	if p := o.Planned; p != nil {
		parts = append(parts, func(first, rest string) { drawPlanned(b, *p, first, rest, width) })
	}
	drawParts(parts, rest)
}

// drawPlanned draws what a plan's function computed, with what it saw.
func drawPlanned(b *strings.Builder, p history.Planned, first, rest string, width int) {
	text := strings.Join(p.Arguments, ", ") + " given by the plan's function"
	if len(p.Saw) > 0 {
		text += ", which saw"
	}
	b.WriteString(cut(first+printable(text), width) + "\n")
	var parts []part
	for _, saw := range p.Saw {
		parts = append(parts, func(first, rest string) { drawValue(b, saw, first, rest, width) })
	}
	drawParts(parts, rest)
}

// part draws what stands below a line: first stands before its own line, and rest before
// those below.
type part func(first, rest string)

func drawParts(parts []part, rest string) {
	for i, draw := range parts {
		branch, below := "├─ ", "│  "
		if i == len(parts)-1 {
			branch, below = "└─ ", "   "
		}
		draw(rest+branch, rest+below)
	}
}
