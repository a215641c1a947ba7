package cmd

import (
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
)

// registerRaw adds the flag of commands that print one value. It is refused beside --json before
// the command runs.
func (a *app) registerRaw(c *cobra.Command) {
	c.Flags().BoolVarP(&a.raw, "raw", "r", false, "print a text as it is, without quotes; other values as JSON")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if a.raw && a.json {
			return exit.Usage("-r prints a text as it is, and --json as JSON: leave one of them out")
		}
		return run(c, args)
	}
}

// printValue prints a value on stdout as JSON; with -r a text as it is.
func (a *app) printValue(v any) error {
	text, ok := v.(string)
	if !ok || !a.raw {
		return a.term.Value(v)
	}
	if a.term.OutTTY {
		text = human.PrintableLines(text)
	}
	return a.term.Line(strings.TrimSuffix(text, "\n"))
}
