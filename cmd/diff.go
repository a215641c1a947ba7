package cmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/engine/history"
	"obelus/store/sqlite"
)

func diffCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "compare two moments: values, calls and scripts",
		Long: `Print at which paths the values of two moments differ, which calls stand otherwise, and
which scripts they ran with in another version. A moment is a number, the
seq of a message in a context (the latest unless -c names one), a context as it
is now, or both: order-7@12. On a terminal a line
is cut at its width, unless -v is given.`,
		Example: `  obelus diff 3 12 -c order-7
  obelus diff order-7 what-if
  obelus diff order-7@12 what-if --json`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return diffMoments(c.Context(), a, args[0], args[1]) },
	}
}

func diffMoments(ctx context.Context, a *app, from, to string) error {
	if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
		return err
	}
	old, err := parseMoment(ctx, a, from)
	if err != nil {
		return err
	}
	now, err := parseMoment(ctx, a, to)
	if err != nil {
		return err
	}
	compared, err := history.Compare(ctx, a.log, old, now)
	if err != nil {
		return err
	}
	lines := compared.Lines()
	for _, line := range lines {
		if a.json {
			err = a.term.NDJSON(line)
		} else {
			err = printChange(a, line)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case compared.TooMany:
		a.term.Noticef("there are more than %d calls: they are not compared", history.MostCompared)
	case len(lines) == 0:
		a.term.Infof("nothing is different")
	}
	return nil
}

// parseMoment parses 12, order-7 or order-7@12.
func parseMoment(ctx context.Context, a *app, text string) (m history.Moment, err error) {
	name, at, both := strings.Cut(text, "@")
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		name, at, both = a.context, text, true
	}
	if both {
		if m.At, err = strconv.ParseInt(at, 10, 64); err != nil || m.At < 1 {
			return m, exit.Usagef("%s: %q is no seq: the first message has seq 1", text, at)
		}
	}
	given := a.context
	defer func() { a.context = given }()
	a.context = name
	if m.Context, err = a.readContext(ctx); err == nil {
		err = warnBeyondHead(ctx, a, m.Context, m.At)
	}
	return m, err
}

// printChange prints a change of a comparison on a line.
func printChange(a *app, change any) error {
	line := ""
	switch c := change.(type) {
	case history.Change:
		line = changeLine(a, c)
	case history.CallChange:
		line = fmt.Sprintf("call %s %s: %s → %s", c.Call, human.Printable(c.Tool), cmp.Or(c.Old, "not there"), cmp.Or(c.New, "not there"))
	case history.ScriptChange:
		line = fmt.Sprintf("script %s: %.7s → %.7s", human.Printable(c.Script), c.Old, c.New)
	}
	if !a.verbose {
		line = human.Cut(line, a.term.Width())
	}
	return a.term.Line(line)
}

// changeLine returns the line of a path whose value differs.
func changeLine(a *app, c history.Change) string {
	path := c.Path
	if c.Instance != "" {
		path += " " + c.Instance
	}
	path = human.Printable(path)
	old, now := human.JSON(c.Old.Value), human.JSON(c.New.Value)
	switch {
	case !c.Old.Set:
		return string(a.term.Paint(human.Green, "+")) + fmt.Sprintf(" %s: %s", path, now)
	case !c.New.Set:
		return string(a.term.Paint(human.Red, "-")) + fmt.Sprintf(" %s: %s", path, old)
	}
	return fmt.Sprintf("~ %s: %s → %s", path, old, now)
}
