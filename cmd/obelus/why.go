package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"obelus/engine"
	"obelus/store"
)

func (a *app) whyCommand() *cobra.Command {
	return a.refCommand(&cobra.Command{
		Use:   "why REF",
		Short: "tell where a value comes from",
		Long: `Tell where the value of a reference or an expression comes from: the messages
that it is made of, the calls that wrote them, what those read, and so on back to
what came from outside, through delegates too. On a terminal it is a tree, else
JSON. What was told before is marked as such, and its objects and arrays are not
repeated.

Exit status: 0, or 1 if it is missing.`,
		Example: `  obelus why state.receipt
  obelus why state.total --at 12 --json`,
	}, a.why)
}

func (a *app) why(ctx context.Context, of asked) error {
	why, err := engine.Explain(ctx, a.log, of.context, of.expr, of.at, of.instance)
	if err != nil {
		return err
	}
	if a.json || !a.term.outTTY {
		return a.term.ndjson(why)
	}
	return a.term.line(strings.TrimRight(drawWhy(*why, a.term.width()), "\n"))
}

// drawWhy is an explanation as a tree, its lines cut at a width.
func drawWhy(why engine.Why, width int) string {
	var b strings.Builder
	drawValue(&b, why, "", "", width)
	return b.String()
}

// drawValue draws a value with what it is made of below it; first stands before
// its own line, and rest before those below.
func drawValue(b *strings.Builder, why engine.Why, first, rest string, width int) {
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
	for i, origin := range why.From {
		branch, below := "├─ ", "│  "
		if i == len(why.From)-1 {
			branch, below = "└─ ", "   "
		}
		drawOrigin(b, origin, rest+branch, rest+below, width)
	}
}

func drawOrigin(b *strings.Builder, o engine.Origin, first, rest string, width int) {
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
	b.WriteString(cut(first+printable(text), width) + "\n")
	for i, read := range o.Reads {
		branch, below := "├─ ", "│  "
		if i == len(o.Reads)-1 {
			branch, below = "└─ ", "   "
		}
		drawValue(b, read, rest+branch, rest+below, width)
	}
}
