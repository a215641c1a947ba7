package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"obelus/engine"
	"obelus/store"
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
			if c.Flags().Changed("at") && at < 1 {
				return &usageError{fmt.Sprintf("--at %d: the first message has seq 1", at)}
			}
			return a.get(c.Context(), args[0], at, instance)
		},
	}
	c.Flags().Int64Var(&at, "at", 0, "as of the message `SEQ`")
	c.Flags().StringVar(&instance, "instance", "", "as the instance `I` sees it")
	return c
}

func (a *app) get(ctx context.Context, ref string, at int64, instance string) error {
	text, err := readRef(ref)
	if err != nil {
		return err
	}
	expr, err := engine.ParseExpr(text)
	if err != nil {
		return err
	}
	name, err := a.openForReading(ctx)
	if err != nil {
		return err
	}
	resolver := store.Resolver{Log: a.log, Context: name, At: at}
	v, missing, err := expr.Eval(func(path store.Path) (any, bool, bool, error) {
		resolved, err := resolver.Resolve(ctx, path, instance)
		return resolved.Value, resolved.Exists, false, err
	})
	if err != nil {
		return err
	}
	if missing != nil {
		var names []string
		for _, path := range missing.Paths {
			names = append(names, path.String())
		}
		what := strings.Join(names, ", ")
		if what == "" {
			what = "a member that the expression asks for"
		}
		a.term.say("%s is missing in context %s", what, name)
		return statusError(exitFailed)
	}
	return a.term.value(v)
}

// readRef reads a reference as people type it: without a dagger if it is a
// plain path, and an expression that does not begin with one as it is.
func readRef(text string) (string, error) {
	if !strings.Contains(text, store.Dagger) {
		if _, err := store.ParsePath(store.Dagger + text); err != nil {
			return "", &usageError{fmt.Sprintf(`%s (a key that is no word is quoted: state["first-name"]; in an expression references begin with †)`, err)}
		}
		return store.Dagger + text, nil
	}
	if !strings.HasPrefix(text, store.Dagger) {
		text = store.Dagger + "(" + text + ")"
	}
	return text, nil
}
