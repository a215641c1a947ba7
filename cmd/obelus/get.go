package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"obelus/engine"
)

func (a *app) getCommand() *cobra.Command {
	var at int64
	var instance string
	c := &cobra.Command{
		Use:   "get REF",
		Short: "print the value of a reference or an expression",
		Long: `Print the value of a reference or an expression, as JSON. The dagger may be left
out of a plain reference: state.user is †state.user.

Exit status: 0, or 1 if it is missing.`,
		Example: `  obelus get state.user
  obelus get '†state.total * 2' --at 12`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkAt(c, at); err != nil {
				return err
			}
			return a.get(c.Context(), args[0], at, instance)
		},
	}
	c.Flags().Int64Var(&at, "at", 0, "as of the message `SEQ`")
	c.Flags().StringVar(&instance, "instance", "", "as the instance `I` sees it")
	return c
}

func (a *app) get(ctx context.Context, ref string, at int64, instance string) error {
	expr, err := engine.ParseRef(ref)
	if err != nil {
		return err
	}
	name, err := a.openForReading(ctx)
	if err != nil {
		return err
	}
	v, err := engine.Get(ctx, a.log, name, expr, at, instance)
	var missing *engine.MissingError
	if errors.As(err, &missing) {
		a.term.say("%s", missing)
		return statusError(exitFailed)
	}
	if err != nil {
		return err
	}
	return a.term.value(v)
}
