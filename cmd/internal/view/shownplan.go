package view

import (
	"fmt"
	"strings"

	"obelus/cmd/internal/human"
	"obelus/engine/history"
)

// ShownPlan returns the lines that show a plan to the person who is to decide about it.
func ShownPlan(p *history.ShownPlan) (lines []string) {
	add := func(format string, args ...any) {
		lines = append(lines, human.Printable(fmt.Sprintf(format, args...)))
	}
	made := ""
	if p.PlannedBy != "" {
		made = ", planned by a " + p.PlannedBy
	}
	if p.Model != nil {
		made += " for " + Usage(*p.Model)
	}
	add("plan %s of %s, tick %d%s", p.Hash, human.OrDash(p.Plan), p.Tick, made)
	for i := range p.Calls {
		c := &p.Calls[i]
		line := c.Call + " " + Title(c.Tool, c.Instance)
		if c.Dropped {
			add("%s  dropped", line)
			continue
		}
		if c.Writes != "" {
			line += " → " + c.Writes
		}
		if c.Held {
			line += "  ‖ will be held"
		}
		add("%s", line)
		detail := func(name, text string) {
			if text != "" {
				add("    %s: %s", name, text)
			}
		}
		detail("reason", c.Reason)
		for _, argument := range c.Arguments {
			add("    %s = %s", argument.Name, shownArgument(argument))
		}
		for _, condition := range []struct {
			name  string
			value any
		}{{"if", c.If}, {"at", c.At}, {"in", c.In}} {
			if condition.value != nil {
				detail(condition.name, Literal(condition.value))
			}
		}
		for _, name := range SortedNames(c.Rules) {
			add("    %s = %s", name, Literal(c.Rules[name]))
		}
		detail("after", strings.Join(c.After, ", "))
		detail("sees", strings.Join(c.Scopes, ", "))
		detail("may use", strings.Join(c.Permissions, ", "))
	}
	if p.Output != nil {
		add("output %s", Literal(p.Output))
	}
	for _, warning := range p.Warnings {
		add("warning: %s", warning)
	}
	if p.Problem != "" {
		add("it can't run with the scripts as they are:")
		for line := range strings.Lines(p.Problem) {
			add("  %s", strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// shownArgument returns an argument as it is written, with what it comes to as far as that is
// known.
func shownArgument(a history.ShownArgument) string {
	text := Literal(a.Value)
	switch {
	case a.Now != nil:
		text += " (now " + human.JSON(*a.Now) + ")"
	case len(a.By) == 1:
		text += " (by call " + a.By[0] + ")"
	case len(a.By) > 1:
		text += " (by calls " + strings.Join(a.By, ", ") + ")"
	case a.Missing:
		text += " (missing)"
	}
	return text
}

// Literal returns a value of a plan as it is written there: an expression without quotes.
func Literal(v any) string {
	if text, ok := v.(string); ok && strings.HasPrefix(text, "†") {
		return text
	}
	return human.JSON(v)
}
