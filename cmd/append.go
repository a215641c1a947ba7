package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/usage"
	"obelus/engine"
	"obelus/engine/plan"
	"obelus/engine/visible"
	"obelus/store"
	"obelus/store/memory"
)

func appendCommand(a *app) *cobra.Command {
	var inputs []string
	c := &cobra.Command{
		Use:   "append [FILE|-]",
		Short: "append messages to a context, all of them or none",
		Long: `Append messages from a file or stdin: a JSON message, an array of them, or one a
line. There may be comments (//, /* */) and commas after the last element. What
log --json prints is taken too, so that a context can be exported and imported. They
go to a new context unless -c names one. Calls are run instead, see obelus run.

-i, any number of times, makes one message of kind input instead, merged from left to
right as by run: key=text, key:=json, a.b=text, {…}, @file, -.`,
		Example: `  obelus append -c order-7 -i approved:=true
  echo '{"type": "state", "user": {"name": "Ada"}}' | obelus append -c order-7
  obelus log --json -c old | obelus append -c copy`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(inputs) > 0 {
				if len(args) > 0 {
					return exit.Usagef("append: -i and %s: messages come from one of them", args[0])
				}
				input, err := inputMessage(c.Context(), a, inputs)
				if err != nil {
					return err
				}
				return refusedInput(appendMessages(c.Context(), a, input, true), inputs)
			}
			file := "-"
			if len(args) > 0 {
				file = args[0]
			}
			messages, err := readMessages(c.Context(), a, file)
			if err != nil {
				return err
			}
			return appendMessages(c.Context(), a, messages, false)
		},
	}
	c.Flags().StringArrayVarP(&inputs, "input", "i", nil, "append this `INPUT`, see above")
	return c
}

// inputMessage returns the message of the values of -i.
func inputMessage(ctx context.Context, a *app, inputs []string) ([]store.Message, error) {
	input, err := cli.ReadInputs(ctx, a.stdin, inputs)
	if err != nil {
		return nil, err
	}
	return []store.Message{{Type: store.TypeData, Kind: "input", Data: input}}, nil
}

// refusedInput has an error about the message of -i name it as input, with a hint.
func refusedInput(err error, inputs []string) error {
	if refused, ok := errors.AsType[*plan.MessageError](err); ok {
		refused.Input = true
	}
	return usage.HintTextInput(err, inputs)
}

// refuseListPart refuses input that would replace a list of a context by an object.
func refuseListPart(ctx context.Context, log store.Reader, name string, input any) error {
	list, err := replacedList(ctx, log, name, input)
	if err != nil || list.IsZero() {
		return err
	}
	return exit.Usagef("-i: %s is a list, which this would replace by an object: give the whole list, as in %s", list, giveList(list))
}

// refusePartOfDefault refuses input that would replace a list that the request itself gives.
func refusePartOfDefault(ctx context.Context, a *app, start engine.Start) error {
	if len(start.Request.Context) == 0 || !start.Input.Set {
		return nil
	}
	given := memory.New()
	defer func() { _ = given.Close() }()
	if _, err := engine.Append(ctx, given, start.Context, start.Request.Context, a.schemaOptions()...); err != nil {
		return nil // the run says so
	}
	return refuseListPart(ctx, given, start.Context, start.Input.Value)
}

// replacedList returns the list of a context that input would replace by an object; the zero Path
// for none.
func replacedList(ctx context.Context, log store.Reader, name string, input any) (store.Path, error) {
	return store.Resolver{Log: log, Context: name}.ListReplaced(ctx, store.KindPath("input"), "", input)
}

// giveList is how a list of the input is given as a whole.
func giveList(list store.Path) string {
	return "-i " + visible.Word(strings.TrimPrefix(list.String(), "†input.")+":=[…]")
}

// appendMessages appends messages, or input by -i.
func appendMessages(ctx context.Context, a *app, messages []store.Message, isInput bool) error {
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
	if isInput {
		if err := refuseListPart(ctx, a.log, name, messages[0].Data.Value); err != nil {
			return err
		}
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
	messages, err := store.ParseMessages(store.PlainJSON(text))
	if errors.Is(err, store.ErrCall) {
		err = fmt.Errorf("%w; run it: obelus run %s -c %s", err, cmp.Or(strings.TrimPrefix(file, "-"), "FILE"), cmp.Or(a.context, "NAME"))
	}
	if err != nil && file != "-" {
		err = fmt.Errorf("%s: %w", file, err)
	}
	if err != nil {
		return nil, exit.Usage(err.Error())
	}
	return messages, nil
}
