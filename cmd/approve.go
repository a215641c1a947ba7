package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/visible"
	"obelus/store/sqlite"
)

func approvalsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "approvals",
		Short: "list what waits for a person to decide",
		Long: `List the calls of all contexts, or of the one that -c names and its delegates, that
are held for a person: what they are to be run with, resolved, and what their scopes
let them see. Lazy plans that wait are shown whole, each with its hash, by which
approve and reject name it: what each call is given, as it is written and as it is now,
why, what its activity may use, where it writes, and whether it will be held.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return listApprovals(c.Context(), a) },
	}
}

// readInbox reads what waits for a person in the context that -c names, else in all.
func (a *app) readInbox(ctx context.Context) (in *history.Inbox, where string, err error) {
	if a.context == "" {
		if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
			return nil, "", err
		}
		in, err = history.ReadInbox(ctx, a.log)
		return in, "the log", err
	}
	name, err := a.openForReading(ctx)
	if err != nil {
		return nil, "", err
	}
	in, err = a.project().Inbox(ctx, name)
	return in, "context " + name, err
}

// listApprovals prints held calls, and lazy plans that wait.
func listApprovals(ctx context.Context, a *app) error {
	unread := a.openProject("") // held calls are listed also where it can't be read
	in, where, err := a.readInbox(ctx)
	if err != nil {
		return err
	}
	for _, plan := range in.Plans {
		err := unread
		if err == nil {
			err = a.printPlan(ctx, plan)
		}
		if err != nil && !errors.As(err, new(*journal.NoSuchCallError)) { // else it was decided meanwhile
			in.Damaged = errors.Join(in.Damaged, fmt.Errorf("the plan that waits in context %s can't be shown: %w", plan.Context, err))
		}
	}
	var rows [][]string
	for _, r := range in.Calls {
		if a.json {
			if err := a.term.NDJSON(r.Approval()); err != nil {
				return err
			}
			continue
		}
		arguments := view.Arguments(r.Hold) + view.Corrections(r)
		if r.Hold.Reasoning != "" {
			arguments += " (" + human.FirstLine(r.Hold.Reasoning) + ")"
		}
		rows = append(rows, []string{r.Context, r.Call, view.Title(r.Tool, r.Instance), human.OrDash(strings.Join(r.Hold.Scopes, ",")), arguments})
	}
	switch {
	case a.json || len(rows) == 0 && len(in.Plans) > 0:
		return in.Damaged
	case len(rows) == 0:
		a.term.Infof("nothing in %s waits for a decision", where)
		return in.Damaged
	}
	return errors.Join(a.term.Table([]string{"CONTEXT", "CALL", "TOOL", "SCOPES", "ARGUMENTS"}, rows), in.Damaged)
}

// printPlan prints a plan that waits.
func (a *app) printPlan(ctx context.Context, waiting journal.LazyPlan) error {
	shown, _, err := a.showPlan(ctx, waiting.Context)
	if err != nil {
		return err
	}
	if a.json {
		return a.term.NDJSON(shown)
	}
	a.term.Infof("the plan of context %s waits: %s approve --plan=%s -c %[1]s, or reject", shown.Context, a.commandPrefix(), shown.Hash)
	for _, line := range view.ShownPlan(shown) {
		if err := a.term.Line(human.Cut(line, a.term.Width())); err != nil {
			return err
		}
	}
	return nil
}

func approveCommand(a *app) *cobra.Command {
	var set, without []string
	var w deciderFlags
	var plan planFlag
	c := &cobra.Command{
		Use:   "approve [CALL]",
		Short: "let a held call run, or a lazy plan",
		Long: `Approve a held call, in the context that -c names in whole, else in the only one that
holds it. It runs with exactly the arguments that approvals shows, or as --set corrects
them. The decision is recorded; resume, or a run that is still alive, goes on.

--plan=HASH releases the lazy plan that approvals shows with that hash; --plan alone
shows it and asks. The release is about the calls as they are written: what they refer to
is read when they run, and a call under a policy is held again. --set 1.2.amount:=5
corrects a member of a call, and --without 1.3 drops one: it is skipped, and the rest is
compiled anew. What would then wait, or read what is there, is listed first.`,
		Example: `  obelus approve 1.3
  obelus approve 1.3 --set amount:=120 --set note="as agreed"
  obelus approve --plan=4be1c0d9a277 --set 1.2.amount:=1 --without 1.3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case plan.given() && len(args) > 0:
				return exit.Usage("approve --plan is about the whole plan: leave the call out")
			case plan.given():
				return decidePlan(c.Context(), a, planDecision{plan: &plan, who: &w, set: set, without: without})
			case len(without) > 0:
				return exit.Usage("--without drops calls from a lazy plan: it goes with --plan")
			case len(args) == 0:
				return exit.Usage("approve: which call? obelus approvals lists what is held; --plan is for a lazy plan")
			}
			return decideCall(c.Context(), a, "approve "+args[0], args[0], w, func(r journal.Record) (journal.Decision, error) { return correctedDecision(r, set) })
		},
	}
	c.Flags().StringArrayVar(&set, "set", nil, "put another value in the place: `key=text` or key:=json, dots lead inside; of a plan 1.2.key=text")
	c.Flags().StringSliceVar(&without, "without", nil, "of a plan: drop the `CALL,...`")
	plan.register(c, "release the lazy plan with this `HASH`")
	w.register(c)
	return c
}

func rejectCommand(a *app) *cobra.Command {
	reason := ""
	var w deciderFlags
	var plan planFlag
	c := &cobra.Command{
		Use:   "reject [CALL] --reason REASON",
		Short: "refuse a held call, or a lazy plan; the reason becomes its failure",
		Long: `Refuse a held call, in the context that -c names in whole, else in the only one that
holds it. It does not run, and fails with the reason; a plan may have a second
alternative in its output path for that. The decision is
recorded; resume, or a run that is still alive, goes on.

--plan=HASH refuses the lazy plan that approvals shows with that hash; --plan alone shows it
and asks. None of its calls runs. Its planner is told the reason, and asked for another
plan; a run whose plan is a list of calls fails.`,
		Example: `  obelus reject 1.3 --reason "over the limit"
  obelus reject --plan=4be1c0d9a277 --reason "too dear"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case strings.TrimSpace(reason) == "":
				return exit.Usage("reject: give a --reason; the call or the plan fails with it")
			case plan.given() && len(args) > 0:
				return exit.Usage("reject --plan is about the whole plan: leave the call out")
			case plan.given():
				return decidePlan(c.Context(), a, planDecision{plan: &plan, who: &w, reject: true, reason: reason})
			case len(args) == 0:
				return exit.Usage("reject: which call? obelus approvals lists what is held; --plan is for a lazy plan")
			}
			return decideCall(c.Context(), a, "reject "+args[0]+" --reason "+visible.Word(reason), args[0], w, func(journal.Record) (journal.Decision, error) {
				return journal.Decision{Reject: true, Reason: reason}, nil
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why: `TEXT`")
	plan.register(c, "refuse the lazy plan with this `HASH`")
	w.register(c)
	return c
}

// correctedDecision returns an approval with the corrections of --set.
func correctedDecision(r journal.Record, set []string) (journal.Decision, error) {
	corrections, err := cli.ReadFlag("set", set)
	if err != nil {
		return journal.Decision{}, err
	}
	arguments, err := r.Hold.With(corrections)
	if err != nil {
		return journal.Decision{}, &journal.CorrectionError{Call: r.Call, Err: err}
	}
	return journal.Decision{Arguments: arguments}, nil
}

// decideCall records a decision about a held call. typed is the command as the user typed it, for
// a hint where several contexts hold such a call.
func decideCall(ctx context.Context, a *app, typed, call string, w deciderFlags, how func(journal.Record) (journal.Decision, error)) error {
	by, err := w.decider()
	if err != nil {
		return err
	}
	if err := a.openProject(""); err != nil {
		return err
	}
	if err := a.openExisting(a.logOptions()); err != nil {
		return err
	}
	root, err := a.roots().Find(ctx, a.roots().Holding(ctx, typed, call))
	if err != nil {
		return err
	}
	record, err := journal.In(a.log, root).HeldCall(ctx, call)
	if err != nil {
		return err
	}
	d, err := how(record)
	if err != nil {
		return err
	}
	d.Context, d.Call, d.Who = record.Context, record.Call, by
	if err := recordDecision(ctx, a, d); err != nil {
		return err
	}
	hold := *record.Hold
	if d.Arguments != nil {
		hold.Arguments = d.Arguments
	}
	what := fmt.Sprintf("%s call %s of context %s (%s)", d.Word(), d.Call, d.Context, strings.TrimSpace(human.Printable(view.Title(record.Tool, record.Instance)+" "+view.Arguments(&hold))))
	return reportDecision(ctx, a, what, d.Context, map[string]any{"context": d.Context, "call": d.Call, "decision": d.Word()})
}

// reportDecision prints a decision, and how the run of its root context goes on.
func reportDecision(ctx context.Context, a *app, what, name string, told map[string]any) error {
	root, unread := journal.In(a.log, name).Root(ctx)
	var run journal.Run
	if unread == nil {
		run, unread = journal.In(a.log, root).CurrentRun(ctx)
	}
	if unread == nil && run.Unwanted() {
		told["status"] = run.Status
	}
	if a.json { // the decision is in the log, whatever else can't be read
		if err := a.term.NDJSON(told); err != nil {
			return err
		}
	}
	if unread != nil {
		return unread
	}
	holder, err := a.log.Holder(ctx, root)
	if err != nil {
		return err
	}
	switch {
	case holder != "":
		a.term.Infof("%s: its run, which is at work, goes on", what)
	case run.Unwanted():
		a.term.Infof("%s: its run was %s, and goes on only by %s resume -c %s", what, run.Status, a.commandPrefix(), root)
	default:
		a.term.Infof("%s: go on with %s resume -c %s", what, a.commandPrefix(), root)
	}
	return nil
}

// recordDecision records a decision, validated by the tools of the plan that its context runs.
func recordDecision(ctx context.Context, a *app, d journal.Decision) error {
	runner, _, _, err := a.project().LastRun(ctx, d.Context)
	if err != nil {
		return err
	}
	return runner.Decide(ctx, d)
}
