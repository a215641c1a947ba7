package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/term"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/visible"
)

// planFlag is the flag --plan of approve and reject: without a value it is about the plan that
// waits.
type planFlag struct {
	hash  string
	given func() bool
}

// anyPlan is the value of --plan without one.
const anyPlan = "?"

func (p *planFlag) register(c *cobra.Command, usage string) {
	flags := c.Flags()
	flags.StringVar(&p.hash, "plan", "", usage)
	flags.Lookup("plan").NoOptDefVal = anyPlan
	p.given = func() bool { return flags.Changed("plan") }
}

// showPlan returns the plan that waits in a context as it is shown, and a runner that decides about
// it.
func (a *app) showPlan(ctx context.Context, name string) (*history.ShownPlan, *engine.Runner, error) {
	runner, _, _, err := a.project().LastRun(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	shown, err := runner.ShowPlan(ctx, name, a.host.Generation().PermissionsOf)
	return shown, runner, err
}

// planDecision is a decision about a plan as it was typed.
type planDecision struct {
	plan    *planFlag
	who     *deciderFlags
	set     []string
	without []string
	reject  bool
	reason  string
}

// command returns the command line of the decision about a plan.
func (d *planDecision) command(a *app, context, hash string) string {
	return a.commandPrefix() + " " + d.words("--plan="+hash) + " -c " + context
}

// words returns the command without its context, with a flag that names the plan.
func (d *planDecision) words(plan string) string {
	words := []string{"approve", plan}
	if d.reject {
		words = []string{"reject", plan, "--reason", visible.Word(d.reason)}
	}
	for _, set := range d.set {
		words = append(words, "--set", visible.Word(set))
	}
	if len(d.without) > 0 {
		words = append(words, "--without", strings.Join(d.without, ","))
	}
	if d.who.given() {
		words = append(words, "--by", visible.Word(d.who.by))
	}
	return strings.Join(words, " ")
}

// decidePlan records a decision about a lazy plan. A plan that the command does not name is shown:
// a person at the terminal is asked, and anybody else is told the line that names it.
func decidePlan(ctx context.Context, a *app, typed planDecision) error {
	by, err := typed.who.decider()
	if err != nil {
		return err
	}
	set, err := cli.ReadFlag("set", typed.set)
	if err != nil {
		return err
	}
	if err := a.openProject(""); err != nil {
		return err
	}
	if err := a.openExisting(a.logOptions()); err != nil {
		return err
	}
	named := "--plan"
	if typed.plan.hash != anyPlan {
		named += "=" + typed.plan.hash
	}
	name, err := a.roots().Find(ctx, a.roots().WithLazyPlan(ctx, typed.words(named)))
	if err != nil {
		return err
	}
	shown, runner, err := a.showPlan(ctx, name)
	if err != nil {
		return err
	}
	d := journal.PlanDecision{Context: shown.Context, Hash: typed.plan.hash, Reject: typed.reject, Reason: typed.reason, Set: set, Without: typed.without, Who: by}
	isNamed := d.Hash != anyPlan
	if !isNamed {
		d.Hash = shown.Hash
		a.term.Infof("%s", strings.Join(view.ShownPlan(shown), "\n"))
	}
	effects, err := runner.PreviewPlan(ctx, d)
	if err != nil {
		return err
	}
	for _, effect := range effects {
		a.term.Noticef("%s", effect)
	}
	if !isNamed {
		yes, err := a.confirmPlan(ctx, &typed, shown)
		if err != nil || !yes {
			return err
		}
	}
	if name, err = runner.DecidePlan(ctx, d); err != nil {
		return err
	}
	word, what := journal.Approved, "released the plan of context "+name
	switch {
	case d.Reject:
		word, what = journal.Rejected, "rejected the plan of context "+name
	case len(d.Set)+len(d.Without) > 0:
		what += describeCorrections(d)
	}
	return reportDecision(ctx, a, what, name, map[string]any{"context": name, "decision": word, "hash": shown.Hash})
}

// confirmPlan asks the person at the terminal about a plan that the command does not name; its
// error tells anybody else how to name it.
func (a *app) confirmPlan(ctx context.Context, typed *planDecision, shown *history.ShownPlan) (yes bool, err error) {
	if !a.canAskPerson() {
		return false, exit.Usagef("nothing is decided yet: the plan of context %s is to be named, by %s", shown.Context, typed.command(a, shown.Context, shown.Hash))
	}
	verb := "let it run"
	if typed.reject {
		verb = "reject it"
	}
	yes, err = term.AskYes(ctx, a.term, a.stdin, verb+"?")
	if err == nil && !yes {
		a.term.Infof("nothing is decided")
	}
	return yes, err
}

// describeCorrections says how a plan was corrected.
func describeCorrections(d journal.PlanDecision) (text string) {
	var set []string
	for _, place := range view.SortedNames(d.Set) {
		set = append(set, fmt.Sprintf("%s=%s", place, view.Literal(d.Set[place])))
	}
	if len(set) > 0 {
		text = ", with " + strings.Join(set, " ")
	}
	if len(d.Without) > 0 {
		slices.Sort(d.Without)
		text += ", without " + strings.Join(d.Without, ", ")
	}
	return text
}
