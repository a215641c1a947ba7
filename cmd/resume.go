package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/term"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/visible"
)

func resumeCommand(a *app) *cobra.Command {
	s := engine.Resume{}
	var results, inputs []string
	var w deciderFlags
	c := &cobra.Command{
		Use:   "resume",
		Short: "go on with a run: after a crash, an interrupt, or input that came",
		Long: `Go on with the newest run of a context: the context that -c names in whole, else the
only one with an unfinished run. Calls whose outcome is recorded keep it; all others
run, each from its beginning. Of a run that has ended, the calls go on that it left in
the background.

-i appends input first, any number of times, as run takes it: key=text, key:=json,
a.b=text, {…}, @file, -. A run that waits for it goes on with it.

--retry runs calls again that failed, or that are in doubt (they had started when the
process ended, and their activity says that it must not run twice), and looks again at
calls that were skipped behind them. They read what they would have read at first, and
messages that were appended since, but nothing of their failures. Where later calls
have written over the same path, the new value is now the newest. Calls that ran
without them, by another alternative perhaps, keep their outcome, and are named at the
end. --skip goes on without a call, and --result with a result that you know from
elsewhere.`,
		Example: `  obelus resume -c order-7 -i approved:=true
  obelus resume -c order-7 --retry 1.2
  obelus resume -c order-7 --result 1.2:='{"receipt": "R-17"}'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if s.Result, err = cli.ReadFlag("result", results); err != nil {
				return err
			}
			if w.given() && len(s.Retry)+len(s.Skip)+len(s.Result) == 0 {
				return exit.Usage("--by goes with --retry, --skip or --result: it tells who decides that")
			}
			if len(inputs) > 0 && len(s.Retry)+len(s.Skip)+len(s.Result) > 0 {
				return exit.Usage("-i gives input to calls that wait for it: with --retry, --skip or --result, append it first, by obelus append -i")
			}
			if s.Who, err = w.decider(); err != nil {
				return err
			}
			return resumeRun(c.Context(), a, s, inputs)
		},
	}
	c.Flags().StringArrayVarP(&inputs, "input", "i", nil, "append this `INPUT` first, see above")
	c.Flags().StringArrayVar(&s.Retry, "retry", nil, "run the `CALL` again, for example 1.2")
	c.Flags().StringArrayVar(&s.Skip, "skip", nil, "go on without the `CALL`")
	c.Flags().StringArrayVar(&results, "result", nil, "go on with this result of a call: `CALL=text` or CALL:=json")
	w.register(c)
	registerLogLevel(a, c)
	a.allow.Register(c)
	a.models.RegisterRun(c)
	a.registerRaw(c)
	return c
}

// contextToResume returns the context that is to go on. With --from it is the latest one unless -c
// names one.
func contextToResume(ctx context.Context, a *app, s engine.Resume, inputs []string) (string, error) {
	words, call := []string{"resume"}, ""
	for _, input := range inputs {
		words = append(words, "-i", visible.Word(input))
	}
	mention := func(flag, named string) {
		words, call = append(words, "--"+flag, named), cmp.Or(call, named)
	}
	for _, named := range s.Retry {
		mention("retry", named)
	}
	for _, named := range s.Skip {
		mention("skip", named)
	}
	for _, named := range view.SortedNames(s.Result) {
		mention("result", named)
	}
	switch command := strings.Join(words, " "); {
	case s.From != "" && a.context == "":
		return a.readContext(ctx)
	case call != "":
		return a.roots().Find(ctx, a.roots().WithFailedCall(ctx, command, call))
	default:
		return a.roots().Find(ctx, a.roots().Unfinished(ctx, command, true))
	}
}

// giveInput appends the values of -i to the context of a run that is to go on.
func giveInput(ctx context.Context, a *app, name string, inputs []string) error {
	message, err := inputMessage(ctx, a, inputs)
	if err != nil {
		return err
	}
	run, err := journal.In(a.log, name).CurrentRun(ctx)
	command := fmt.Sprintf("%s append -c %s -i …", a.commandPrefix(), name)
	switch {
	case err != nil:
		return err
	case run.Tick == 0: // resuming tells that there is no run
		return nil
	case run.Status == journal.RunFailed:
		return exit.Usagef("-i: the run of context %s has failed, and nothing in it waits for input: append it by %s, and then resume --retry CALL", name, command)
	case run.Status.Finished():
		return exit.Usagef("-i: the run of context %s is %s, and nothing in it waits for input; %s appends it all the same", name, run.Status, command)
	}
	if holder, err := a.log.Holder(ctx, name); holder != "" || err != nil { // resuming tells who has it
		return err
	}
	if err := refuseListPart(ctx, a.log, name, message[0].Data.Value); err != nil {
		return err
	}
	_, err = engine.Append(ctx, a.log, name, message, a.schemaOptions()...)
	return refusedInput(err, inputs)
}

// resumeRun goes on with a run, with the values of -i appended before.
func resumeRun(ctx context.Context, a *app, s engine.Resume, inputs []string) error {
	if err := a.openProject(""); err != nil {
		return err
	}
	if err := a.openExisting(a.logOptions()); err != nil {
		return err
	}
	var err error
	if s.Context, err = contextToResume(ctx, a, s, inputs); err != nil {
		return err
	}
	if len(inputs) > 0 {
		if err := giveInput(ctx, a, s.Context, inputs); err != nil {
			return err
		}
	}
	return goOn(ctx, a, s)
}

// goOn goes on with a run of the open log, and prints how it ends.
func goOn(ctx context.Context, a *app, s engine.Resume) error {
	name, err := journal.In(a.log, s.Context).RootPlan(ctx)
	if err != nil {
		return err
	}
	request, registry, unread := a.host.Generation().PlanOf(name)
	s.Request = request
	p := term.NewProgress(a.term, a.json, "")
	p.Root = s.Context
	runner := newRunner(a, registry, p)
	ends := &conclusion{began: time.Now()}
	ends.watch(ctx, a, runner, p)
	defer a.announceDraining(ctx, runner, s.Context)()
	outcome, err := runner.Resume(ctx, s)
	p.End()
	var refused *plan.PlanError
	var unplanned *engine.NoPlannerError
	if (errors.As(err, &refused) || errors.As(err, &unplanned)) && unread != nil {
		return errors.Join(err, fmt.Errorf("the plan's file, which may have registered it, can't be read in %s: %w", a.dir, unread))
	}
	if err != nil {
		return err
	}
	return ends.print(ctx, a, outcome)
}
