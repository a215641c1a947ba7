package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/engine"
	"obelus/store"
)

func appendCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "append [FILE|-]",
		Short: "append messages to a context, all of them or none",
		Long: `Append messages from a file or stdin: a JSON message, an array of them, or one a
line. What log --json prints is taken too, so that a context can be exported
and imported. They go to a new context unless -c names one.`,
		Example: `  echo '{"type": "input", "approved": true}' | obelus append -c order-7
  obelus log --json -c old | obelus append -c copy`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file := "-"
			if len(args) > 0 {
				file = args[0]
			}
			return appendMessages(c.Context(), a, file)
		},
	}
}

func appendMessages(ctx context.Context, a *app, file string) error {
	messages, err := readMessages(ctx, a, file)
	if err != nil {
		return err
	}
	if len(messages) == 0 && a.context == "" { // an empty new context would become the latest one
		return exit.Usage("there are no messages to append")
	}
	if err := a.openLog(); err != nil {
		return err
	}
	name, err := a.writeContext()
	if err != nil {
		return err
	}
	appended, err := engine.Append(ctx, a.log, name, messages, a.schemaOptions()...)
	if err != nil {
		return err
	}
	if a.json {
		return a.term.NDJSON(map[string]any{"context": name, "seq": appended.Seq, "messages": len(messages)})
	}
	if a.context == "" {
		a.term.Infof("context %s", name)
	}
	a.term.Infof("appended: the context is at message %d", appended.Seq)
	return nil
}

func readMessages(ctx context.Context, a *app, file string) ([]store.Message, error) {
	text, err := cli.ReadFileOrStdin(ctx, a.stdin, file)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, exit.Usagef("can't read %s: %s", file, cli.PlainError(err))
	}
	messages, err := store.ParseMessages(text)
	if err != nil {
		if file == "-" {
			return nil, exit.Usage(err.Error())
		}
		return nil, exit.Usagef("%s: %s", file, err)
	}
	return messages, nil
}
