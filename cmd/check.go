package cmd

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/permissions"
	"obelus/cmd/internal/triggers"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/ops"
	"obelus/store"
	"obelus/store/memory"
)

func checkCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "check [PLAN…]",
		Short: "report errors in plans; nothing runs, nothing is written",
		Long: `Check plans, all of the project's unless some are named: syntax, tools, schemas,
expressions, scopes, cycles, and types that can't be right: of a parameter, the
output or a literal in an expression beside what the one call that writes it says
by its _output, or the plan by the schema of its kind. As warnings, references that
nothing writes, writes in no certain order, results of activities that return
nothing, and names and texts that are probably misspelt. The context is taken for
empty unless -c names one. Unless plans are named, schedules and hooks are held
to theirs, and who asks for which permissions is listed.

Exit status: 0 without errors, whatever it warns of, 2 with some.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completePlans,
		RunE:              func(c *cobra.Command, args []string) error { return checkPlans(c.Context(), a, args) },
	}
	return c
}

// checkPlans checks plans, or all of the project's, and prints their problems.
func checkPlans(ctx context.Context, a *app, plans []string) error {
	first := ""
	if len(plans) > 0 {
		first = plans[0]
		if err := checkPlanExists(a, first); err != nil {
			return err
		}
	}
	if err := a.openProject(first); err != nil {
		problems, ok := host.Problems(err)
		if !ok {
			return err
		}
		return printProblems(a, problems)
	}
	var problems []plan.Problem
	if len(plans) == 0 {
		var err error
		if plans, err = cli.ProjectPlans(a.dir); err != nil {
			return err
		}
		problems = triggers.Check(ctx, a.host.Generation())
		asked, err := permissions.Check(a.term, a.host.Generation(), a.dir, plans, a.json)
		if err != nil {
			return err
		}
		problems = append(problems, asked...)
	}
	log, name, err := contextToCheck(ctx, a)
	if err != nil {
		return err
	}
	problems = append(problems, a.host.Generation().Lint()...)
	for _, plan := range plans {
		found, asked, err := checkPlan(ctx, a, log, name, plan)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			a.term.Infof("%s: %s", planLabel(a, plan), cmp.Or(asked, "ok"))
		}
		for _, p := range found {
			if !slices.Contains(problems, p) { // problems of settings and tools are found with every plan
				problems = append(problems, p)
			}
		}
	}
	return printProblems(a, problems)
}

// planLabel returns a plan's name as problems show it.
func planLabel(a *app, plan string) string {
	if name, err := a.nameInProject(plan); err == nil {
		return name
	}
	return plan
}

// contextToCheck returns the log and the context against which plans are checked: the context that
// -c names, else an empty one.
func contextToCheck(ctx context.Context, a *app) (store.Log, string, error) {
	if a.context == "" {
		return memory.New(), "", nil
	}
	name, err := a.openForReading(ctx)
	return a.log, name, err
}

// checkPlan returns the problems of a plan. asked says why it can be checked fully only while it
// runs: it is a function, or a model is asked for it.
func checkPlan(ctx context.Context, a *app, log store.Log, name, path string) (found []plan.Problem, asked string, err error) {
	file, err := a.nameInProject(path)
	if err != nil {
		return nil, "", err
	}
	checked, err := ops.Project{Host: a.host, Log: log}.CheckFile(ctx, file, engine.Start{Context: name})
	if problems, ok := host.Problems(err); ok { // there is no such file
		return problems, "", nil
	}
	if err != nil || checked.Plan == nil {
		return checked.Problems, "", err
	}
	request := checked.Request
	if request.IsModelPlanned() {
		asked = "ok so far: a model plans it, and its calls are known as it runs"
	} else if request.Planner != nil {
		asked = "ok so far: it is a function, whose calls are known as it runs"
	}
	return checked.Problems, asked, nil
}

func printProblems(a *app, problems []plan.Problem) error {
	var status error
	for _, p := range problems {
		if p.Severity == plan.SeverityError {
			status = exit.Refused
		}
		if err := printProblem(a, p); err != nil {
			return err
		}
	}
	a.hintUnreadActivities(problems)
	return status
}

func printProblem(a *app, p plan.Problem) error {
	if a.json {
		return a.term.NDJSON(p)
	}
	return a.term.Line(view.Problem(p))
}
