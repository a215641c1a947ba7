package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/term"
	"obelus/cmd/internal/usage"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store/memory"
)

func runCommand(a *app) *cobra.Command {
	var inputs, set []string
	var o runOptions
	var w deciderFlags
	from := ""
	c := &cobra.Command{
		Use:   "run [PLAN]",
		Short: "run a plan; its final output goes to stdout",
		Long: `Run a plan file (.lua or .json). What it says is appended to a context, a new
one unless -c names one, and its calls run as soon as what they read is there.

Input comes by -i, any number of times, merged from left to right:
  -i key=text   -i key:=json   -i a.b=text   -i '{…}'   -i @file   -i -

--approve holds calls for a person before they run: all of them (always), those
that request scopes (scopes), those of some tools or run by their activities
(their names), or none (never). On a terminal you are asked; elsewhere they are
held until approve or reject, and resume. With --mode lazy the plan is recorded
and shown, and runs once approve --plan has released it.

The output is printed once it is known. Calls without an output path may go on in the
background then: the command stays for them, until it is interrupted.

--watch runs the plan again, in a new context, whenever it or the project's
scripts change, until it is interrupted. Its input is read once.

--once makes the run of -c NAME once: it goes on with the run if that is unfinished,
and prints again how it ended if it has ended, so that a line for cron may run at
any time. A run of that name with another plan or input is refused, and so is the
name of one that was pruned less than 30 days ago.

--from takes no plan: it runs a call of a fork (obelus fork) again, and all calls
downstream of it, by the scripts as they are now. --set corrects the call's
arguments, and lets it run also if a person had rejected it. Calls that do not
depend on it keep their outcome. Values that were first written by the calls that run
again no longer count, for this run and later ones of the context, and for messages
that are appended to it. They stay in the log, and get and the views show them where
nothing was written over them since. Where calls that keep their outcome had written
over them, the values written now are newer, also for the run's output. A correction
holds until its call has an outcome by it.

Exit status: 0 done, 1 a call or the run failed, 2 the plan or a message is
refused, 3 something waits, 4 another process has the log, 130 interrupted, 143
ended by SIGTERM.`,
		Example: `  obelus run plans/refund.lua -i customerId=c-1042
  obelus run plans/refund.lua -i @input.json --json
  obelus run --from 1.4 --set amount:=20 -c what-if`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completePlans,
		RunE: func(c *cobra.Command, args []string) error {
			o.parallelGiven, o.approveGiven = c.Flags().Changed("parallel"), c.Flags().Changed("approve")
			switch {
			case from != "" && (len(args) > 0 || len(inputs) > 0 || o.mode != "" || o.watch || o.once || o.approveGiven || o.parallelGiven):
				return exit.Usage("run --from runs a recorded call again: it takes no plan, input, --mode, --parallel, --watch, --once or --approve")
			case from != "":
				return rerunCall(c.Context(), a, from, set, w)
			case c.Flags().Changed("by"):
				return exit.Usage("--by goes with --from: it tells who has that call run again")
			case len(set) > 0:
				return exit.Usage("--set goes with --from: it corrects the arguments of that call")
			case len(args) == 0:
				return exit.Usage("run: no arguments were given: which plan?\n  usage: obelus run PLAN [flags]")
			}
			return runPlanFile(c.Context(), a, args[0], inputs, o)
		},
	}
	c.Flags().StringArrayVarP(&inputs, "input", "i", nil, "`INPUT` of the run, see above")
	c.Flags().StringVar(&o.approve, "approve", "", "hold calls for a person: `POLICY` is never, always, planned, scopes, or names of tools (default: the setting approve, else never)")
	c.Flags().StringVar(&o.mode, "mode", "", "the `MODE` eager, or lazy: record the plan and run it once it is released (default: what the plan says)")
	c.Flags().StringVar(&from, "from", "", "run the `CALL` of a fork again, for example 1.4, and what is downstream of it")
	c.Flags().StringArrayVar(&set, "set", nil, "with --from: put another argument in its place: `key=text` or key:=json, dots lead inside")
	c.Flags().StringArrayVar(&o.labels, "label", nil, "keep a label with the run, for lists: `NAME=VALUE`")
	c.Flags().BoolVar(&o.once, "once", false, "make the run of -c NAME, go on with it, or print again how it ended")
	c.Flags().BoolVar(&o.watch, "watch", false, "run the plan again whenever a script changes")
	c.Flags().IntVar(&o.parallel, "parallel", engine.DefaultParallel, "run at most `N` calls at once")
	w.register(c)
	c.Flags().Lookup("by").Usage = "with --from: the `NAME` to record for that decision (default: the login name)"
	registerLogLevel(a, c)
	a.allow.Register(c)
	a.models.RegisterRun(c)
	a.registerRaw(c)
	return c
}

// completePlans has the shell complete plan files.
func completePlans(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"lua", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// runOptions holds the flags of run.
type runOptions struct {
	approve       string
	mode          string
	parallel      int
	watch         bool
	once          bool
	parallelGiven bool // whether --parallel was given
	approveGiven  bool // whether --approve was given
	singleCall    bool // the output is the result of the only call
	inputs        []string
	labels        []string
}

func runPlanFile(ctx context.Context, a *app, plan string, inputs []string, o runOptions) error {
	if o.parallelGiven && o.parallel < 1 {
		return exit.Usagef("--parallel %d: at least one call must be able to run", o.parallel)
	}
	if o.mode != "" && o.mode != "eager" && o.mode != "lazy" {
		return exit.Usagef("--mode %s: it is eager or lazy", o.mode)
	}
	if o.watch && a.context != "" {
		return exit.Usage("--watch runs the plan in a new context each time: leave -c out")
	}
	if o.once && (a.context == "" || o.watch) {
		return exit.Usage("--once makes the run of one name: give it by -c, and leave --watch out")
	}
	name, err := findPlan(a, plan)
	if err != nil {
		return err
	}
	o.inputs = inputs
	start := engine.Start{}
	if start.Labels, err = cli.ReadLabels(o.labels); err != nil {
		return err
	}
	if start.Input, err = cli.ReadInputs(ctx, a.stdin, inputs); err != nil {
		return err
	}
	if o.watch {
		return runOnChange(ctx, a, func() error { return runPlan(ctx, a, name, start, o) }, name)
	}
	return usage.HintTextInput(runPlan(ctx, a, name, start, o), inputs)
}

// runPlan runs a plan of the project, as its file is now.
func runPlan(ctx context.Context, a *app, name string, start engine.Start, o runOptions) error {
	request, registry, err := a.host.Plan(name)
	if err != nil {
		return err
	}
	for _, p := range request.SchemaProblems(registry) {
		if p.Severity == plan.SeverityWarning {
			a.term.Infof("%s", view.Problem(p))
		}
	}
	request.SetMode(o.mode)
	start.Request = request
	if o.once {
		return runOnce(ctx, a, start, registry, o)
	}
	return runAndReport(ctx, a, start, registry, o)
}

// findPlan loads the project that a plan file is in, and returns the file's name there.
func findPlan(a *app, plan string) (name string, err error) {
	if err := checkPlanExists(a, plan); err != nil {
		return "", err
	}
	if err := a.openProject(plan); err != nil {
		return "", err
	}
	return a.nameInProject(plan)
}

// openPlan loads the project that a plan file is in, and the plan.
func openPlan(a *app, plan string) (*plan.Request, *plan.Registry, error) {
	name, err := findPlan(a, plan)
	if err != nil {
		return nil, nil, err
	}
	return a.host.Plan(name)
}

func checkPlanExists(a *app, plan string) error {
	if info, err := os.Stat(plan); err == nil && info.IsDir() {
		return exit.Usagef("%s is a folder: a plan is a .lua or .json file", plan)
	} else if err != nil && a.projectFlag == "" {
		near := ""
		if file := cli.NearPlan(plan); file != "" && errors.Is(err, fs.ErrNotExist) {
			near = fmt.Sprintf(" (did you mean %s?)", file)
		}
		return exit.Usagef("can't read the plan %s: %s%s", plan, cli.PlainError(err), near)
	}
	return nil
}

// runAndReport runs a plan and prints how it ends.
func runAndReport(ctx context.Context, a *app, start engine.Start, registry *plan.Registry, o runOptions) error {
	ends := &conclusion{began: time.Now(), before: func(outcome *journal.Outcome) (err error) {
		if o.singleCall && outcome.Status == journal.RunDone {
			outcome.Output, err = callResult(ctx, a, outcome)
		}
		reportWarnings(ctx, a, start, registry, outcome, o)
		for _, hint := range usage.HintTextParameters(start.Request.Calls, outcome, o.inputs) {
			a.term.Infof("%s", hint)
		}
		return err
	}}
	outcome, err := runToRest(ctx, a, start, registry, o, ends)
	if err != nil {
		return err
	}
	return ends.print(ctx, a, outcome)
}

// reportWarnings prints the warnings of check that bear on how a run has ended: those about calls
// that are not done, and about an output that is missing.
func reportWarnings(ctx context.Context, a *app, start engine.Start, registry *plan.Registry, outcome *journal.Outcome, o runOptions) {
	lacking := start.Request.Output.Set && outcome.Output == nil
	if o.singleCall || outcome.Lazy != nil || outcome.Status == journal.RunDone && !lacking || start.Request.Planner != nil {
		return
	}
	checked, err := a.host.Generation().Settings().Runner(a.log, registry).Check(ctx, engine.Start{Context: outcome.Context, Request: start.Request})
	if err != nil {
		return // the run itself has reported the error
	}
	open, waiting := map[int]bool{0: lacking}, map[int]bool{0: true}
	for _, r := range outcome.Calls {
		if i := r.Position - 1; i < len(checked.Calls) {
			at := checked.Calls[i].Written
			open[at], waiting[at] = open[at] || r.Status != journal.Done, waiting[at] || r.Status == journal.Waiting
		}
	}
	bearing := slices.DeleteFunc(checked.Warnings, func(p plan.Problem) bool {
		// A call may have failed because another returned no value. A call that waits lists what
		// the context holds.
		return !open[p.Call] && p.Code != plan.CodeTypes || p.Code == plan.CodeUnresolved && !waiting[p.Call]
	})
	slices.SortStableFunc(bearing, func(p, q plan.Problem) int { return cmp.Compare(hintRank(p), hintRank(q)) })
	for _, p := range bearing {
		a.term.Infof("%s", view.Problem(p))
	}
}

// hintRank orders warnings: those with a suggestion come first.
func hintRank(p plan.Problem) int {
	if strings.Contains(p.Message, "did you mean") {
		return 0
	}
	return 1
}

// runToRest starts a run and waits until it rests. ends is printed before that, if it is known; it
// may be nil.
func runToRest(ctx context.Context, a *app, start engine.Start, registry *plan.Registry, o runOptions, ends *conclusion) (*journal.Outcome, error) {
	var err error
	if o.approveGiven {
		if start.Approve, err = plan.ParsePolicy(o.approve); err != nil {
			return nil, exit.Usagef("--approve %s: %s", o.approve, err)
		}
	}
	if start.Context, err = a.writeContext(); err != nil {
		return nil, err
	}
	if err := refusePartOfDefault(ctx, a, start); err != nil {
		return nil, err
	}
	start.New = a.context == ""
	var missing error
	if start.New { // checked before a log is created
		missing = start.MissingInput(ctx, nil, registry.Schemas...)
	}
	if missing == nil {
		if err := openLogFor(ctx, a, start, registry); err != nil {
			return nil, err
		}
		if a.context != "" {
			missing = start.MissingInput(ctx, a.log, registry.Schemas...)
			if err := refuseListPart(ctx, a.log, start.Context, start.Input.Value); err != nil {
				return nil, err
			}
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("%w: give it by -i name=text or -i name:=json", missing)
	}
	announce := ""
	if a.context == "" {
		announce = start.Context
	}
	p := term.NewProgress(a.term, a.json, announce)
	p.Root = start.Context
	runner := newRunner(a, registry, p)
	if o.parallelGiven {
		runner.Parallel = o.parallel
	}
	start.Once = o.once
	if ends != nil {
		ends.watch(ctx, a, runner, p)
	}
	defer a.announceDraining(ctx, runner, start.Context)()
	outcome, err := runner.Run(ctx, start)
	if err == nil && outcome.Context != "" {
		p.Begin()
	}
	p.End()
	return outcome, err
}

// openLogFor opens the log, if it is not open yet. It creates none for a plan that is refused.
func openLogFor(ctx context.Context, a *app, start engine.Start, registry *plan.Registry) error {
	if a.log != nil {
		return nil
	}
	path, err := a.dbPath()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		runner := a.host.Generation().Settings().Runner(memory.New(), registry)
		if err := runner.Accepts(ctx, start); err != nil {
			return err
		}
	}
	return a.openLog()
}

// newRunner returns an engine over the open log, with the project's settings.
func newRunner(a *app, registry *plan.Registry, p *term.Progress) *engine.Runner {
	r := a.host.Generation().Settings().Runner(a.log, registry)
	r.Observe = p.Observe
	a.models.Watch(a.term, a.json, r)
	if a.canAskPerson() {
		term.NewAsker(a.term, a.stdin, loginName(), p.CallName, func(ctx context.Context, d journal.Decision) error { return recordDecision(ctx, a, d) }).Attend(r)
	}
	return r
}

// canAskPerson reports whether a person at the terminal can decide about held calls during a run.
func (a *app) canAskPerson() bool {
	file, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(file) && a.term.ErrTTY && !a.quiet && !a.json && !a.prompting
}
