package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"obelus/cmd/internal/exit"
	"obelus/engine/journal"
	"obelus/engine/spell"
	"obelus/store"
)

// rootSearch says which root contexts a command could mean that changes how a run goes on.
type rootSearch struct {
	command  string // as the user typed it, for example "approve 1.3"
	notFound string // the error where no context matches
	held     bool   // only roots in which something waits for a person, in their delegates too
	matches  func(name string, run journal.Run) (bool, error)
}

// maxCandidates bounds how many contexts are listed.
const maxCandidates = 10

// findRoot returns the context that a command is to change: the one that -c names in whole, else
// the only root context that matches. Several or none are an error.
func (a *app) findRoot(ctx context.Context, c rootSearch) (string, error) {
	if a.context != "" {
		return a.context, a.checkContextExists(ctx, a.context)
	}
	var found []string
	seen := map[string]bool{}
	for info, err := range a.log.Contexts(ctx, store.ContextFilter{Roots: !c.held, Held: c.held}) {
		if err != nil {
			return "", err
		}
		name := info.Context
		if info.Origin.Parent != "" {
			if name, err = journal.In(a.log, name).Root(ctx); err != nil {
				continue
			}
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		run, err := journal.In(a.log, name).LastRun(ctx)
		if errors.As(err, new(*journal.DamagedError)) {
			continue // the command contexts reports it
		}
		is := false
		if err == nil {
			is, err = c.matches(name, run)
		}
		if err != nil {
			return "", err
		}
		if is {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", exit.Usage(c.notFound)
	case 1:
		return found[0], nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s could be about %d contexts: say which", c.command, len(found))
	for _, name := range found[:min(len(found), maxCandidates)] {
		fmt.Fprintf(&b, "\n  %s %s -c %s", a.commandPrefix(), c.command, name)
	}
	if more := len(found) - maxCandidates; more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return "", exit.Usage(b.String())
}

// checkContextExists returns an error with the nearest name if no context has a name. Only reading
// commands take a prefix.
func (a *app) checkContextExists(ctx context.Context, name string) error {
	if _, err := a.log.Info(ctx, name); !errors.Is(err, store.ErrNoContext) {
		return err
	}
	var names []string
	for info, err := range a.log.Contexts(ctx, store.ContextFilter{}) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(info.Context, name) && info.Origin.Parent == "" {
			return fmt.Errorf("%w (the whole name is needed to decide: did you mean %q?)", a.noContext(), info.Context)
		}
		names = append(names, info.Context)
	}
	if near := spell.Nearest(name, names); near != "" {
		return fmt.Errorf("%w (did you mean %q?)", a.noContext(), near)
	}
	return a.noContext()
}

// rootsHolding matches the roots that hold a call, in their delegates too.
func rootsHolding(ctx context.Context, a *app, command, call string) rootSearch {
	return rootSearch{
		command: command, notFound: fmt.Sprintf("no context holds a call %s for a person (obelus approvals lists what is held)", call), held: true,
		matches: func(name string, run journal.Run) (bool, error) {
			if run.Status.Finished() {
				return false, nil
			}
			_, err := journal.In(a.log, name).HeldCall(ctx, call)
			if errors.As(err, new(*journal.NoSuchCallError)) {
				return false, nil
			}
			return err == nil, err
		},
	}
}

// rootsWithLazyPlan matches the roots whose plan, or a delegate's plan, waits to be released.
func rootsWithLazyPlan(ctx context.Context, a *app) rootSearch {
	return rootSearch{
		command: "approve --plan", notFound: "no plan waits to be released", held: true,
		matches: func(name string, run journal.Run) (bool, error) {
			if run.Status.Finished() {
				return false, nil
			}
			plans, err := journal.In(a.log, name).Lazy(ctx)
			return len(plans) > 0, err
		},
	}
}

// rootsUnfinished matches the roots with an unfinished run that no process holds. cancelled says
// whether cancelled runs count.
func rootsUnfinished(ctx context.Context, a *app, command string, cancelled bool) rootSearch {
	return rootSearch{
		command: command, notFound: "there is no unfinished run but those that are going on (obelus contexts lists all)",
		matches: func(name string, run journal.Run) (bool, error) {
			if run.Status.Finished() || run.Status == journal.RunCancelled && !cancelled {
				return false, nil
			}
			holder, err := a.log.Holder(ctx, name)
			return holder == "", err
		},
	}
}

// rootsWithFailedCall matches the roots in which a call has failed or is in doubt.
func rootsWithFailedCall(ctx context.Context, a *app, command, call string) rootSearch {
	return rootSearch{
		command: command, notFound: fmt.Sprintf("no context has a call %s that has failed or is in doubt (obelus calls -c ID lists its calls)", call),
		matches: func(name string, _ journal.Run) (bool, error) {
			records, err := journal.In(a.log, name).CurrentRecords(ctx, 0)
			for _, r := range records {
				if r.Call == call && (r.Status == journal.Failed || r.Status == journal.InDoubt) {
					return true, err
				}
			}
			return false, err
		},
	}
}
