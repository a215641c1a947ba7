package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/question"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/numeral"
	"obelus/engine/plan"
	"obelus/host/model/fit"
	"obelus/store/sqlite"
)

func promptCommand(a *app) *cobra.Command {
	next := ""
	var inputs []string
	c := &cobra.Command{
		Use:   "prompt [CALL | TICK]",
		Short: "print what a model is sent, and send nothing",
		Long: `Print what the model was sent, or would be sent, about a call of a context, as
1.2; or for the plan of a round, as 2; the latest one by default. With --next it is
what running a plan would send first. Nothing is sent, no activity runs, and
nothing is recorded: a copy of the log is run from there to the question.

The system text comes first, then the blocks of the prompt, then the schema of the
answer; -v shows the schema as it is fitted to the provider too. With --json it is
the request as cassettes hold it. It is made by the scripts and settings as they
are now; a note says whether the recorded request was the same.`,
		Example: `  obelus prompt -c order-7 1.2
  obelus prompt --next plans/triage.lua -i @mail.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case next != "" && len(args) > 0:
				return exit.Usage("prompt --next is about a plan, and takes no call")
			case next != "":
				return promptOfPlan(c.Context(), a, next, inputs)
			case len(inputs) > 0:
				return exit.Usage("-i goes with --next: it is the input of the plan")
			case len(args) == 0:
				args = []string{""}
			}
			return promptOfCall(c.Context(), a, args[0])
		},
	}
	c.Flags().StringVar(&next, "next", "", "what running the `PLAN` would send first")
	c.Flags().StringArrayVarP(&inputs, "input", "i", nil, "with --next: `INPUT` of the run, as for obelus run")
	a.models.Register(c)
	return c
}

// openCapturing loads the project with models that keep what they are asked.
func openCapturing(a *app, planFile string) (*question.Capture, error) {
	kept := question.NewCapture()
	a.wrapAsker = kept.Wrap
	if err := a.openProject(planFile); err != nil {
		return nil, err
	}
	if !a.host.Generation().Registry().HasModel() {
		return nil, exit.Usage(errNoModels.Error())
	}
	return kept, nil
}

// promptOfPlan prints the first request of a run of a plan.
func promptOfPlan(ctx context.Context, a *app, file string, inputs []string) error {
	if err := checkPlanExists(a, file); err != nil {
		return err
	}
	kept, err := openCapturing(a, file)
	if err != nil {
		return err
	}
	defer kept.Close()
	name, err := a.nameInProject(file)
	if err != nil {
		return err
	}
	request, registry, err := a.host.Plan(name)
	if err != nil {
		return err
	}
	start := engine.Start{Context: "prompt", Request: request}
	if start.Input, err = cli.ReadInputs(ctx, a.stdin, inputs); err != nil {
		return err
	}
	log, done, err := a.copyOfLog(ctx)
	if err != nil {
		return err
	}
	defer done()
	if a.context != "" && a.log != nil {
		if start.Context, err = a.readContext(ctx); err != nil {
			return err
		}
	}
	request.Mode = ""
	runner := a.host.Generation().Settings().Runner(log, registry.WithoutActivities())
	runner.Drain = -1
	if _, err := runner.Run(kept.Begin(ctx), start); err != nil && kept.Request() == nil {
		return err
	}
	if kept.Request() == nil {
		return exit.Usagef("%s asks no model before one of its activities has run", file)
	}
	return printPrompt(a, kept, "")
}

// promptOfCall prints the request about a call, or for the plan of a tick.
func promptOfCall(ctx context.Context, a *app, call string) error {
	kept, err := openCapturing(a, "")
	if err != nil {
		return err
	}
	defer kept.Close()
	if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
		return err
	}
	log, done, err := a.copyOfLog(ctx)
	if err != nil {
		return err
	}
	defer done()
	name, err := a.readContext(ctx)
	if err != nil {
		return err
	}
	at, err := question.Find(ctx, log, name, call)
	if err != nil {
		return err
	}
	fork := "prompt-" + strconv.FormatInt(at.Seq, 10)
	if !at.Fresh {
		if _, err := journal.Fork(ctx, log, name, at.Seq, fork); err != nil {
			return err
		}
	}
	source, err := journal.In(log, name).RootPlan(ctx)
	if err != nil {
		return err
	}
	request, registry, unread := a.host.Generation().PlanOf(source)
	if unread != nil {
		return unread
	}
	runner := a.host.Generation().Settings().Runner(log, registry.WithoutActivities())
	runner.Drain = -1
	runner.Approve = plan.Policy{Never: true}
	if err := at.Ask(ctx, kept, runner, fork, request); err != nil && kept.Request() == nil {
		return err
	}
	if kept.Request() == nil {
		return exit.Usagef("no model is asked about %s: its answer came with it, or what it reads is missing", cmp.Or(call, "the latest call"))
	}
	return printPrompt(a, kept, at.Hash)
}

// copyOfLog copies the log to a file of its own, which is removed by done. Without a log the copy
// is empty.
func (a *app) copyOfLog(ctx context.Context) (log *sqlite.Log, done func(), err error) {
	folder, err := os.MkdirTemp("", "obelus-prompt-")
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(folder, "log.db")
	remove := func() { _ = os.RemoveAll(folder) }
	source, err := a.dbPath()
	if err == nil {
		if _, missing := os.Stat(source); missing == nil {
			if a.log == nil {
				err = a.openExisting(sqlite.Options{ReadOnly: true})
			}
			if err == nil {
				original, ok := a.log.(*sqlite.Log)
				if !ok {
					err = errors.New("this log can't be copied")
				} else {
					err = original.Backup(ctx, path)
				}
			}
		}
	}
	if err == nil {
		log, err = sqlite.Open(path, sqlite.Options{Synchronous: "normal"})
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return log, func() { _ = log.Close(); remove() }, nil
}

// printPrompt prints a request. recorded is the hash of the one that was sent, empty if there is
// none.
func printPrompt(a *app, kept *question.Capture, recorded string) error {
	r := kept.Request()
	if recorded != "" && recorded != r.Hash() {
		a.term.Noticef("what was sent was another request (%s): scripts, settings or the log have changed since", recorded[:min(12, len(recorded))])
	}
	if a.json {
		return a.term.Line(string(r.JSON()))
	}
	schema, err := json.MarshalIndent(r.Schema, "", "  ")
	if err != nil {
		return err
	}
	parts := slices.Concat([]string{r.System}, r.Blocks, []string{"## Schema of the answer\n" + string(schema)})
	if a.verbose {
		dialect, _ := fit.DialectOf(kept.Config(r.Model).WithDefaults().Dialect)
		fitted, err := fit.Schema(r.Schema, dialect)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(fitted.Schema, "", "  ")
		if err != nil {
			return err
		}
		parts = append(parts, fmt.Sprintf("## As %s takes it (%s)\n%s", dialect.Name, numeral.Size(int64(fitted.Size)), text))
	}
	a.term.Infof("request %s to model %s, some %s tokens", r.Hash()[:12], r.Model, numeral.Thousands(int64(r.Tokens())))
	return a.term.Line(human.PrintableText(strings.Join(parts, "\n\n")))
}
