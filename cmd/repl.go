package cmd

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/prompt"
	"obelus/cmd/internal/term"
	"obelus/cmd/internal/view"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
)

func replCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "repl",
		Short: "a Lua prompt with the project loaded",
		Long: `Open a Lua prompt with the project loaded, in the sandbox that its scripts have.

` + prompt.Help + `

The history is kept in .obelus/history. Elsewhere than on a terminal, lines are
read from stdin without a prompt, and values are all that goes to stdout.

Exit status: 0; elsewhere than on a terminal 1 if any input failed.`,
		Example: `  obelus repl
  printf '=1+1\n' | obelus repl`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runPrompt(c.Context(), a) },
	}
	a.allow.Register(c)
	a.models.Register(c)
	return c
}

func runPrompt(ctx context.Context, a *app) error {
	if err := a.openProject(""); err != nil {
		return err
	}
	a.prompting = true // a question that was interrupted would take the next line as its answer
	p := prompt.New(prompted{a}, a.term, a.stdin, a.verbose)
	defer p.Close()
	if in, ok := a.stdin.(*os.File); !ok || !term.IsTerminal(in) || !a.term.OutTTY {
		return p.ReadPiped(ctx)
	}
	where, history := "no project", ""
	if a.found {
		where, history = a.dir, filepath.Join(a.dir, ".obelus", "history")
	}
	return p.ReadTyped(ctx, history, func() {
		a.term.Infof("obelus %s, %s\n=expr prints, †path reads, run PLAN and call TOOL run\nhelp says more, Ctrl-D leaves", version, where)
	}, a.finishInterrupt)
}

// prompted is the project as a prompt asks for it. The log is open during one action alone.
type prompted struct{ app *app }

func (p prompted) Generation() *host.Generation { return p.app.host.Generation() }

// Plan reads a plan's file relative to the working directory if there is one, else relative to the
// project's folder.
func (p prompted) Plan(file string) (*plan.Request, *plan.Registry, error) {
	if _, err := os.Stat(file); err == nil {
		if name, err := p.app.nameInProject(file); err == nil {
			return p.app.host.Plan(name)
		}
	}
	return p.app.host.Plan(filepath.ToSlash(file))
}

func (p prompted) Call(registry *plan.Registry, tool string, parameters map[string]any) (*plan.Request, error) {
	return newCallRequest(p.app, registry, tool, parameters)
}

func (p prompted) Run(ctx context.Context, s prompt.Start) error {
	return p.withLog(func() error {
		return runAndReport(ctx, p.app, s.Start, s.Registry, runOptions{singleCall: s.SingleCall})
	})
}

func (p prompted) Outcome(ctx context.Context, s prompt.Start) (outcome *journal.Outcome, err error) {
	err = p.withLog(func() (err error) {
		if outcome, err = runToRest(ctx, p.app, s.Start, s.Registry, runOptions{}, nil); err != nil {
			return err
		}
		if s.SingleCall && outcome.Status == journal.RunDone {
			outcome.Output, err = callResult(ctx, p.app, outcome)
		}
		explainOutcome(p.app, outcome)
		return err
	})
	return outcome, err
}

func (p prompted) PrintRef(ctx context.Context, ref string) error {
	return p.withLog(func() error { return answerRef(ctx, p.app, ref, refQuery{}, printRefValue) })
}

func (p prompted) Paths(prefix string) (paths []string) {
	_ = p.withLog(func() error {
		ctx := context.Background()
		name, err := p.app.openForReading(ctx)
		if err == nil {
			paths = pathsBelow(ctx, p.app, name, prefix)
		}
		return err // a prompt has no place to show one
	})
	return paths
}

func (p prompted) Fail(err error) { p.app.fail(err) }

// withLog calls do, and closes the log afterwards: other processes may want it while the person
// thinks.
func (p prompted) withLog(do func() error) error {
	err := do()
	if p.app.log == nil {
		return err
	}
	closed := p.app.log.Close()
	p.app.log = nil
	return cmp.Or(err, closed)
}

// pathsBelow returns the paths one segment below a prefix, sorted. The prefix is empty or ends with
// a dot.
func pathsBelow(ctx context.Context, a *app, name, prefix string) (paths []string) {
	if prefix == "" {
		kinds, _ := a.log.Kinds(ctx, name)
		for _, k := range kinds {
			paths = append(paths, k.Kind)
		}
		slices.Sort(paths)
		return slices.Compact(paths)
	}
	path, err := store.ParsePath(store.Dagger + strings.TrimSuffix(prefix, "."))
	if err != nil {
		return nil
	}
	found, err := (store.Resolver{Log: a.log, Context: name}).Resolve(ctx, path, "")
	object, ok := found.Value.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	for _, key := range view.SortedNames(object) {
		// Other keys are written in quotes.
		if _, err := store.ParsePath(store.Dagger + prefix + key); err == nil {
			paths = append(paths, prefix+key)
		}
	}
	return paths
}
