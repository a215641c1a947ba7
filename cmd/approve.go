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
	"obelus/engine"
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
let them see. Lazy plans that wait are listed too.`,
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
	in = &history.Inbox{}
	if in.Plans, err = journal.In(a.log, name).Lazy(ctx); err == nil {
		in.Calls, err = journal.In(a.log, name).Holds(ctx)
	}
	return in, "context " + name, err
}

// listApprovals prints held calls, and lazy plans that wait.
func listApprovals(ctx context.Context, a *app) error {
	in, where, err := a.readInbox(ctx)
	if err != nil {
		return err
	}
	for _, plan := range in.Plans {
		if !a.json {
			a.term.Infof("the plan of context %s waits: %s approve --plan -c %[1]s", plan.Context, a.commandPrefix())
		} else if err := a.term.NDJSON(plan); err != nil {
			return err
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
		rows = append(rows, []string{r.Context, r.Call, view.Title(r.Tool, r.Instance), human.OrDash(strings.Join(r.Hold.Scopes, ",")), view.Arguments(r.Hold)})
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

func approveCommand(a *app) *cobra.Command {
	var set []string
	var w deciderFlags
	plan := false
	c := &cobra.Command{
		Use:   "approve [CALL]",
		Short: "let a held call run, or a lazy plan",
		Long: `Approve a held call, in the context that -c names in whole, else in the only one that
holds it. It runs with exactly the arguments that approvals shows, or as --set corrects
them. --plan releases a lazy plan. The
decision is recorded; resume, or a run that is still alive, goes on.`,
		Example: `  obelus approve 1.3
  obelus approve 1.3 --set amount:=120 --set note="as agreed"
  obelus approve --plan`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case plan && len(args)+len(set) > 0:
				return exit.Usage("approve --plan is about the whole plan: leave the call and --set out")
			case plan:
				return releasePlan(c.Context(), a, w)
			case len(args) == 0:
				return exit.Usage("approve: which call? obelus approvals lists what is held; --plan is for a lazy plan")
			}
			return decideCall(c.Context(), a, "approve "+args[0], args[0], w, func(r journal.Record) (journal.Decision, error) { return correctedDecision(r, set) })
		},
	}
	c.Flags().StringArrayVar(&set, "set", nil, "put another argument in its place: `key=text` or key:=json, dots lead inside")
	c.Flags().BoolVar(&plan, "plan", false, "release the lazy plan")
	w.register(c)
	return c
}

func rejectCommand(a *app) *cobra.Command {
	reason := ""
	var w deciderFlags
	c := &cobra.Command{
		Use:   "reject CALL --reason REASON",
		Short: "refuse a held call; the reason becomes its failure",
		Long: `Refuse a held call, in the context that -c names in whole, else in the only one that
holds it. It does not run, and fails with the reason; a plan may have a second
alternative in its output path for that. The decision is
recorded; resume, or a run that is still alive, goes on.`,
		Example: `  obelus reject 1.3 --reason "over the limit"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return exit.Usage("reject: give a --reason; the call fails with it")
			}
			return decideCall(c.Context(), a, "reject "+args[0]+" --reason "+visible.Word(reason), args[0], w, func(journal.Record) (journal.Decision, error) {
				return journal.Decision{Reject: true, Reason: reason}, nil
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why: `TEXT`")
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
	plan, err := journal.In(a.log, d.Context).RootPlan(ctx)
	if err != nil {
		return err
	}
	_, registry, _ := a.host.Generation().PlanOf(plan)
	return (&engine.Runner{Log: a.log, Registry: registry}).Decide(ctx, d)
}

// releasePlan lets a lazy plan run.
func releasePlan(ctx context.Context, a *app, w deciderFlags) error {
	by, err := w.decider()
	if err != nil {
		return err
	}
	if err := a.openExisting(sqlite.Options{}); err != nil {
		return err
	}
	name, err := a.roots().Find(ctx, a.roots().WithLazyPlan(ctx))
	if err != nil {
		return err
	}
	if name, err = engine.Release(ctx, a.log, name, by); err != nil {
		return err
	}
	return reportDecision(ctx, a, "released the plan of context "+name, name, map[string]any{"context": name, "decision": journal.Approved})
}
