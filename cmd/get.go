package cmd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/visible"
	"obelus/store"
)

func getCommand(a *app) *cobra.Command {
	c := refCommand(a, &cobra.Command{
		Use:   "get REF",
		Short: "print the value of a reference or an expression",
		Long: `Print the value of a reference or an expression, as JSON. The dagger may be left
out of a plain reference: state.user is †state.user. With -r a text is printed as it is.

Exit status: 0, or 1 if it is missing.`,
		Example: `  obelus get state.user
  obelus get '†state.total * 2' --at 12`,
	}, printRefValue)
	a.registerRaw(c)
	return c
}

// refQuery is a reference or an expression, with the context, the seq (0 is the newest) and the
// instance at which it is read.
type refQuery struct {
	context  string
	expr     *expr.Expr
	at       int64
	instance string
}

// refCommand completes a command that takes a reference: its flags and how it runs.
func refCommand(a *app, c *cobra.Command, answer func(context.Context, *app, refQuery) error) *cobra.Command {
	var of refQuery
	c.Args = cobra.ExactArgs(1)
	c.Flags().Int64Var(&of.at, "at", 0, "as of the message `SEQ`")
	c.Flags().StringVar(&of.instance, "instance", "", "as the instance `I` sees it")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkAt(c, of.at); err != nil {
			return err
		}
		return answerRef(c.Context(), a, args[0], of, answer)
	}
	return c
}

// answerRef opens the log, finds the context and answers a query about a reference. A missing value
// ends the command with status 1.
func answerRef(ctx context.Context, a *app, ref string, of refQuery, answer func(context.Context, *app, refQuery) error) (err error) {
	if ref != store.Dagger { // else the context's kinds are named
		if of.expr, err = history.ParseRef(ref); err != nil {
			return err
		}
	}
	if of.context, err = a.openForReading(ctx); err != nil {
		return err
	}
	if of.expr == nil {
		return namesNoKind(ctx, a, of.context)
	}
	if err := warnBeyondHead(ctx, a, of.context, of.at); err != nil {
		return err
	}
	err = answer(ctx, a, of)
	if missing := (*history.MissingError)(nil); errors.As(err, &missing) {
		a.term.Infof("%s%s", missing, missing.Meant(ctx, a.log, of.at, of.instance))
		return exit.Failed
	}
	return err
}

// namesNoKind returns the error for a reference without a kind.
func namesNoKind(ctx context.Context, a *app, name string) error {
	kinds, err := a.log.Kinds(ctx, name)
	if err != nil {
		return err
	}
	var there []string
	for _, k := range kinds {
		if kind := store.Dagger + visible.Word(k.Kind); !slices.Contains(there, kind) {
			there = append(there, kind)
		}
	}
	return exit.Usagef("† needs a kind behind it: context %s has %s", name, cmp.Or(strings.Join(there, ", "), "no data"))
}

// warnBeyondHead prints a notice if a context does not have a seq yet: its newest state is used.
func warnBeyondHead(ctx context.Context, a *app, name string, at int64) error {
	head, err := a.log.Head(ctx, name)
	if err == nil && at > head {
		a.term.Infof("context %s holds the messages 1 to %d: %d is as it is now", name, head, at)
	}
	return err
}

func printRefValue(ctx context.Context, a *app, of refQuery) error {
	v, err := history.Get(ctx, journal.In(a.log, of.context), of.expr, of.at, of.instance)
	if err != nil {
		return err
	}
	if a.json {
		return a.term.NDJSON(v)
	}
	return a.printValue(v)
}
