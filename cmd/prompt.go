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
	"sync"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/model"
	"obelus/host/model/fit"
	"obelus/store"
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
	a.models.register(c)
	return c
}

// capture is what answers in place of models: it keeps the first request, and ends the run.
type capture struct {
	configs map[string]model.Config // by the models' names
	stop    context.CancelFunc
	mu      sync.Mutex
	request *model.Request
}

// Ask implements [model.Asker].
func (c *capture) Ask(ctx context.Context, r *model.Request, _ *plan.Meter) (*model.Answer, error) {
	c.mu.Lock()
	if c.request == nil {
		c.request = r
		c.stop()
	}
	c.mu.Unlock()
	<-ctx.Done() // so that the call is cut off, and has not failed
	return nil, ctx.Err()
}

// begin returns a context for a run, which ends with the next request.
func (c *capture) begin(ctx context.Context) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = nil
	ctx, c.stop = context.WithCancel(ctx)
	return ctx
}

// openCapturing loads the project with models that keep what they are asked.
func openCapturing(a *app, planFile string) (*capture, error) {
	kept := &capture{stop: func() {}, configs: map[string]model.Config{}}
	a.wrapAsker = func(c model.Config, _ model.Asker) model.Asker {
		kept.configs[c.Name] = c
		return kept
	}
	if err := a.openProject(planFile); err != nil {
		return nil, err
	}
	if !a.host.Generation().Registry().HasModel() {
		return nil, exit.Usage(errNoModels.Error())
	}
	return kept, nil
}

// idle returns a registry whose activities do nothing: a run stops where it would need one.
func idle(registry *plan.Registry) *plan.Registry {
	dead := *registry
	dead.Activities = map[string]*plan.Registered{}
	for name, a := range registry.Activities {
		stub := &plan.Registered{Name: a.Name, Activity: plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, errors.New("no activity runs for obelus prompt")
		})}
		dead.Activities[name] = stub
	}
	return &dead
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
	defer func() { kept.stop() }()
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
	runner := a.host.Generation().Settings().Runner(log, idle(registry))
	runner.Drain = -1
	if _, err := runner.Run(kept.begin(ctx), start); err != nil && kept.request == nil {
		return err
	}
	if kept.request == nil {
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
	defer func() { kept.stop() }()
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
	at, err := findAsked(ctx, log, name, call)
	if err != nil {
		return err
	}
	fork := "prompt-" + strconv.FormatInt(at.seq, 10)
	if _, err := journal.Fork(ctx, log, name, at.seq, fork); err != nil {
		return err
	}
	plan, err := journal.In(log, name).RootPlan(ctx)
	if err != nil {
		return err
	}
	request, registry, unread := a.host.Generation().PlanOf(plan)
	if unread != nil {
		return unread
	}
	runner := a.host.Generation().Settings().Runner(log, idle(registry))
	runner.Drain = -1
	runner.Approve = neverHold
	if err := at.ask(ctx, kept, runner, fork, request); err != nil && kept.request == nil {
		return err
	}
	if kept.request == nil {
		return exit.Usagef("no model is asked about %s: its answer came with it, or what it reads is missing", cmp.Or(call, "the latest call"))
	}
	return printPrompt(a, kept, at.hash)
}

var neverHold = plan.Policy{Never: true}

// asked is a question to a model that the log has.
type asked struct {
	seq   int64    // the context's message before it; 0 for the newest
	first bool     // it was for the first plan of a run
	calls []string // that the request was about; empty for a plan
	hash  string   // of the recorded request; empty if there is none
}

// ask has a run in a fork come to the question. Calls that one request answered run again one after
// the other, each until it asks: those before it have no outcome then, and ask with it.
func (q *asked) ask(ctx context.Context, kept *capture, runner *engine.Runner, fork string, request *plan.Request) error {
	var err error
	switch {
	case q.first && request != nil:
		again := *request
		again.Context, again.Mode = nil, "" // its messages are there
		_, err = runner.Run(kept.begin(ctx), engine.Start{Context: fork, Request: &again})
	case len(q.calls) == 0:
		_, err = runner.Resume(kept.begin(ctx), engine.Resume{Context: fork, Request: request})
	}
	for _, call := range q.calls {
		if _, err = runner.Resume(kept.begin(ctx), engine.Resume{Context: fork, Request: request, From: call}); kept.request == nil {
			return err
		}
	}
	return err
}

// findAsked finds the question about a call or a tick of a context; the latest one for an empty
// text.
func findAsked(ctx context.Context, log store.Log, name, call string) (asked, error) {
	in := journal.In(log, name)
	records, err := in.Records(ctx)
	if err != nil {
		return asked{}, err
	}
	plans, err := in.Plans(ctx, 1)
	if err != nil {
		return asked{}, err
	}
	var found *asked
	for _, p := range plans {
		if p.ByModel && (call == "" || call == strconv.Itoa(p.Tick)) {
			found = &asked{seq: p.Start, first: p.Tick == p.First}
			if p.Model != nil {
				found.hash = p.Model.Request
			}
		}
	}
	for _, r := range records {
		if call == r.Call || call == "" && r.Model != nil {
			found = askedAbout(r, records)
			// Calls of an earlier tick are run again where that tick had ended.
			if next := slices.IndexFunc(plans, func(p journal.PlanEvent) bool { return p.Tick > r.Tick }); found != nil && next >= 0 {
				found.seq = plans[next].Start
			}
		}
	}
	if found != nil {
		return *found, nil
	}
	if call == "" {
		return asked{}, exit.Usagef("no model was asked in context %s", name)
	}
	var known []string
	for _, r := range records {
		known = append(known, r.Call)
	}
	return asked{}, exit.Usagef("context %s has no call %s%s", name, human.Printable(call), strings.TrimSuffix(" ("+hint(call, known, "obelus calls lists them")+")", " ()"))
}

// askedAbout is the question about a call, and about those that the same request answered.
func askedAbout(r journal.Record, records []journal.Record) *asked {
	if r.Model == nil {
		return &asked{calls: []string{r.Call}}
	}
	first := cmp.Or(r.Model.Group, r.Call)
	q := &asked{}
	for _, other := range records {
		if other.Model == nil || cmp.Or(other.Model.Group, other.Call) != first {
			continue
		}
		q.calls = append(q.calls, other.Call)
		if other.Call == first {
			q.hash = other.Model.Request
		}
	}
	return q
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
func printPrompt(a *app, kept *capture, recorded string) error {
	r := kept.request
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
		dialect, _ := fit.DialectOf(kept.configs[r.Model].WithDefaults().Dialect)
		fitted, err := fit.Schema(r.Schema, dialect)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(fitted.Schema, "", "  ")
		if err != nil {
			return err
		}
		parts = append(parts, fmt.Sprintf("## As %s takes it (%s)\n%s", dialect.Name, human.Size(int64(fitted.Size)), text))
	}
	a.term.Infof("request %s to model %s, some %s tokens", r.Hash()[:12], r.Model, human.Thousands(int64(r.Tokens())))
	return a.term.Line(human.PrintableText(strings.Join(parts, "\n\n")))
}
