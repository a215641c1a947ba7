package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/engine"
	"obelus/engine/numeral"
	"obelus/host/model/fit"
	"obelus/host/prompts"
	"obelus/store"
	"obelus/store/sqlite"
)

func promptCommand(a *app) *cobra.Command {
	next, answers := "", false
	var inputs []string
	c := &cobra.Command{
		Use:   "prompt [CALL | TICK]",
		Short: "print what a model is sent, and send nothing",
		Long: `Print what the model was sent, or would be sent, about a call of a context, as
1.2; or for the plan of a tick, as 2; the latest one by default. With --next it is
what running a plan would send first. Nothing is sent, no activity runs, and
nothing is recorded.

Where the model has keep = true it is printed as it was sent, and --answer prints
what came too. Otherwise it is computed: a copy of the context is run in memory
from there to the question, by the scripts and settings as they are now, and a note
says whether that is what was sent, or that the log has no request as sent.

The system text comes first, then the blocks of the prompt, then the schema of the
answer; -v shows the schema as it is fitted to the provider too, and what of it that
does not express, which the answer is held to all the same. With --json it is
{"context","tick","calls","state","hash","recorded","request","answers"}: request is
as cassettes hold it, state is sent, computed, differs (computed, and not what was
sent) or next, and recorded is left out where no request is on record as sent.`,
		Example: `  obelus prompt -c order-7 1.2
  obelus prompt -c order-7 1.2 --answer
  obelus prompt --next plans/triage.lua -i @mail.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var p *prompts.Prompt
			var err error
			switch {
			case next != "" && (len(args) > 0 || answers):
				return exit.Usage("prompt --next is about a plan that has not run: it takes no call, and has no answer")
			case next != "":
				p, err = promptOfPlan(c.Context(), a, next, inputs)
			case len(inputs) > 0:
				return exit.Usage("-i goes with --next: it is the input of the plan")
			default:
				p, err = promptOfCall(c.Context(), a, strings.Join(args, ""))
			}
			if err != nil {
				return err
			}
			return printPrompt(a, p, answers)
		},
	}
	c.Flags().StringVar(&next, "next", "", "what running the `PLAN` would send first")
	c.Flags().BoolVar(&answers, "answer", false, "print what the model answered too, where it is kept")
	c.Flags().StringArrayVarP(&inputs, "input", "i", nil, "with --next: `INPUT` of the run, as for obelus run")
	a.models.Register(c)
	return c
}

// promptOfPlan returns the first request of a run of a plan.
func promptOfPlan(ctx context.Context, a *app, file string, inputs []string) (*prompts.Prompt, error) {
	if err := checkPlanExists(a, file); err != nil {
		return nil, err
	}
	if err := a.openProject(file); err != nil {
		return nil, err
	}
	name, err := a.nameInProject(file)
	if err != nil {
		return nil, err
	}
	request, registry, err := a.host.Plan(name)
	if err != nil {
		return nil, err
	}
	source := prompts.Source{Generation: a.host.Generation()}
	start := engine.Start{Context: "prompt", Request: request}
	if start.Input, err = cli.ReadInputs(ctx, a.stdin, inputs); err != nil {
		return nil, err
	}
	if a.context != "" {
		if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
			return nil, err
		}
		source.Log = a.log
		if start.Context, err = a.readContext(ctx); err != nil {
			return nil, err
		}
	}
	return source.Next(ctx, start, registry)
}

// promptOfCall returns the request about a call, or for the plan of a tick.
func promptOfCall(ctx context.Context, a *app, call string) (*prompts.Prompt, error) {
	if err := a.openProject(""); err != nil {
		return nil, err
	}
	if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
		return nil, err
	}
	name, err := a.readContext(ctx)
	if err != nil {
		return nil, err
	}
	return prompts.Source{Generation: a.host.Generation(), Log: a.log}.About(ctx, name, call)
}

// stateNotes says of a request where it comes from.
var stateNotes = map[prompts.State]string{
	prompts.Sent:     ", as it was sent",
	prompts.Computed: ", computed",
	prompts.Differs:  ", computed; differs from what was sent",
}

// printPrompt prints a request, and what came of it.
func printPrompt(a *app, p *prompts.Prompt, answers bool) error {
	if answers && len(p.Answers) == 0 {
		return exit.Usagef("the log keeps no answer to this: set keep = true for the model %s, for later ones", p.Request.Model)
	}
	if a.json {
		return a.term.NDJSON(p)
	}
	r, whyLoose := p.Request.FormFor(p.Config)
	schema, err := json.MarshalIndent(r.Schema, "", "  ")
	if err != nil {
		return err
	}
	parts := slices.Concat([]string{r.System}, r.Blocks, []string{"## Schema of the answer\n" + string(schema)})
	if a.verbose {
		dialect, _ := fit.DialectOf(p.Config.WithDefaults().Dialect)
		fitted, err := fit.Schema(r.Schema, dialect)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(fitted.Schema, "", "  ")
		if err != nil {
			return err
		}
		parts = append(parts, fmt.Sprintf("## As %s takes it (%s)\n%s", dialect.Name, numeral.Size(int64(fitted.Size)), text))
		if len(fitted.Notes) > 0 {
			parts = append(parts, "## Not expressed there\n"+strings.Join(fitted.Notes, "\n"))
		}
	}
	if answers {
		parts = append(parts, answerTexts(p)...)
	}
	note := fmt.Sprintf("request %.12s to model %s, some %s tokens%s", p.Hash, r.Model, numeral.Thousands(int64(r.Tokens())), stateNotes[p.State])
	if whyLoose != "" {
		note += ", in its loose form, for " + whyLoose
	}
	switch {
	case p.State == prompts.Differs:
		a.term.Noticef("%s (%.12s): scripts, settings or the log have changed since", note, p.Recorded)
	case p.State == prompts.Computed && p.Recorded == "":
		a.term.Infof("%s; none is on record as sent", note)
	default:
		a.term.Infof("%s", note)
	}
	if len(r.Cut) > 0 {
		a.term.Infof("cut to stay within the window: %s", strings.Join(r.Cut, ", "))
	}
	return a.term.Line(human.PrintableLines(strings.Join(parts, "\n\n")))
}

// answerTexts returns the answers for a person, with what each was asked beyond the first request.
func answerTexts(p *prompts.Prompt) (parts []string) {
	for _, answer := range p.Answers {
		parts = append(parts, answer.Added...)
		switch {
		case answer.Error != "":
			parts = append(parts, "## No answer\n"+answer.Error)
		case answer.Text == "" && answer.Size > 0:
			parts = append(parts, fmt.Sprintf("## Answer\n(%s, %s)", numeral.Size(answer.Size), store.WhyNotKept(answer.Size)))
		default:
			parts = append(parts, "## Answer\n"+answer.Text)
		}
	}
	return parts
}
