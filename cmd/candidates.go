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

// candidates are the contexts that a command could mean which changes how a run goes on.
type candidates struct {
	command string // as it is typed, for example "approve 1.3"
	none    string // what is said where there is none
	is      func(name string, run journal.Run) (bool, error)
}

// maxCandidates bounds how many are listed.
const maxCandidates = 10

// contextToDecide finds the context that a command is to change: the one of which -c is the
// whole name, else the only root context that the command could mean.
func (a *app) contextToDecide(ctx context.Context, c candidates) (string, error) {
	if a.context != "" {
		return a.context, a.checkContext(ctx, a.context)
	}
	var found []string
	for info, err := range a.log.Contexts(ctx, "") {
		if err != nil {
			return "", err
		}
		if info.Origin.Parent != "" {
			continue
		}
		run, err := journal.LastRun(ctx, a.log, info.Context)
		if errors.As(err, new(*journal.DamagedError)) {
			continue // contexts tells of it
		}
		is := false
		if err == nil {
			is, err = c.is(info.Context, run)
		}
		if err != nil {
			return "", err
		}
		if is {
			found = append(found, info.Context)
		}
	}
	switch len(found) {
	case 0:
		return "", exit.Usage(c.none)
	case 1:
		return found[0], nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s could be about %d contexts: say which", c.command, len(found))
	for _, name := range found[:min(len(found), maxCandidates)] {
		fmt.Fprintf(&b, "\n  %s %s -c %s", a.again(), c.command, name)
	}
	if more := len(found) - maxCandidates; more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return "", exit.Usage(b.String())
}

// checkContext refuses a name that no context has: a prefix is enough for reading alone.
func (a *app) checkContext(ctx context.Context, name string) error {
	if _, err := a.log.Info(ctx, name); !errors.Is(err, store.ErrNoContext) {
		return err
	}
	var names []string
	for info, err := range a.log.Contexts(ctx, "") {
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

// rootsHolding are the roots that hold a call, or one of whose delegates does.
func rootsHolding(ctx context.Context, a *app, command, call string) candidates {
	return candidates{
		command: command, none: fmt.Sprintf("no context holds a call %s for a person (obelus approvals -c ID lists what one holds)", call),
		is: func(name string, run journal.Run) (bool, error) {
			if run.Status.Finished() {
				return false, nil
			}
			_, err := journal.HeldCall(ctx, a.log, name, call)
			if errors.As(err, new(*journal.NoSuchCallError)) {
				return false, nil
			}
			return err == nil, err
		},
	}
}

// rootsWithLazyPlan are the roots whose plan waits to be released, or that of one of whose delegates does.
func rootsWithLazyPlan(ctx context.Context, a *app) candidates {
	return candidates{
		command: "approve --plan", none: "no plan waits to be released",
		is: func(name string, run journal.Run) (bool, error) {
			if run.Status.Finished() {
				return false, nil
			}
			plans, err := journal.Lazy(ctx, a.log, name)
			return len(plans) > 0, err
		},
	}
}

// rootsUnfinished are the roots whose run can go on and that nobody is at.
func rootsUnfinished(ctx context.Context, a *app, command string, cancelled bool) candidates {
	return candidates{
		command: command, none: "no run is unfinished that nobody is at (obelus contexts lists all)",
		is: func(name string, run journal.Run) (bool, error) {
			if run.Status.Finished() || run.Status == journal.RunCancelled && !cancelled {
				return false, nil
			}
			holder, err := a.log.Holder(ctx, name)
			return holder == "", err
		},
	}
}

// rootsWithFailedCall are the roots in which a call can be tried again, skipped or given its result.
func rootsWithFailedCall(ctx context.Context, a *app, command, call string) candidates {
	return candidates{
		command: command, none: fmt.Sprintf("no context has a call %s that has failed or is in doubt (obelus calls -c ID lists its calls)", call),
		is: func(name string, _ journal.Run) (bool, error) {
			records, err := journal.CurrentRecords(ctx, a.log, name, 0)
			for _, r := range records {
				if r.Call == call && (r.Status == journal.Failed || r.Status == journal.InDoubt) {
					return true, err
				}
			}
			return false, err
		},
	}
}
