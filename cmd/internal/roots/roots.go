// Package roots finds the context that a command is to change, where the user has not named it or
// has named it wrongly.
package roots

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

// Finder finds root contexts of a log.
type Finder struct {
	Log     store.Reader
	Context string // the name that -c gives; empty for none
	Prefix  string // the words by which obelus is called from here
}

// Search says which root contexts a command could mean that changes how a run goes on.
type Search struct {
	command  string // as the user typed it, for example "approve 1.3"
	notFound string // the error if no context matches
	held     bool   // only roots in which something waits for a person, in their delegates too
	matches  func(name string, run journal.Run) (bool, error)
}

// maxCandidates bounds how many contexts are listed.
const maxCandidates = 10

// Find returns the context that a command is to change: the one that -c names in whole, else
// the only root context that matches. Several or none are an error.
func (f *Finder) Find(ctx context.Context, c Search) (string, error) {
	if f.Context != "" {
		return f.Context, f.checkExists(ctx, f.Context)
	}
	var found []string
	seen := map[string]bool{}
	for info, err := range f.Log.Contexts(ctx, store.ContextFilter{Roots: !c.held, Held: c.held}) {
		if err != nil {
			return "", err
		}
		name := info.Context
		if info.Origin.Parent != "" {
			if name, err = journal.In(f.Log, name).Root(ctx); err != nil {
				continue
			}
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		run, err := journal.In(f.Log, name).LastRun(ctx)
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
		fmt.Fprintf(&b, "\n  %s %s -c %s", f.Prefix, c.command, name)
	}
	if more := len(found) - maxCandidates; more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return "", exit.Usage(b.String())
}

// checkExists returns an error with the nearest name if no context has a name. Only reading
// commands take a prefix.
func (f *Finder) checkExists(ctx context.Context, name string) error {
	if _, err := f.Log.Info(ctx, name); !errors.Is(err, store.ErrNoContext) {
		return err
	}
	var names []string
	for info, err := range f.Log.Contexts(ctx, store.ContextFilter{}) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(info.Context, name) && info.Origin.Parent == "" {
			return fmt.Errorf("%w (the whole name is needed to decide: did you mean %q?)", f.noContext(), info.Context)
		}
		names = append(names, info.Context)
	}
	if near := spell.Nearest(name, names); near != "" {
		return fmt.Errorf("%w (did you mean %q?)", f.noContext(), near)
	}
	return f.noContext()
}

// noContext returns the error for a name that no context has.
func (f *Finder) noContext() error {
	return fmt.Errorf("%w: %s (obelus contexts lists them)", store.ErrNoContext, f.Context)
}

// Holding matches the roots that hold a call, in their delegates too.
func (f *Finder) Holding(ctx context.Context, command, call string) Search {
	return Search{
		command: command, notFound: fmt.Sprintf("no context holds a call %s for a person (obelus approvals lists what is held)", call), held: true,
		matches: func(name string, run journal.Run) (bool, error) {
			if run.Status.Finished() {
				return false, nil
			}
			_, err := journal.In(f.Log, name).HeldCall(ctx, call)
			if errors.As(err, new(*journal.NoSuchCallError)) {
				return false, nil
			}
			return err == nil, err
		},
	}
}

// WithLazyPlan matches the roots whose plan, or a delegate's plan, waits for a decision.
func (f *Finder) WithLazyPlan(ctx context.Context, command string) Search {
	return Search{
		command: command, notFound: "no plan waits to be released", held: true,
		matches: func(name string, run journal.Run) (bool, error) {
			if run.Status.Finished() {
				return false, nil
			}
			plans, err := journal.In(f.Log, name).Lazy(ctx)
			return len(plans) > 0, err
		},
	}
}

// Unfinished matches the roots with an unfinished run that no process holds. cancelled says
// whether cancelled runs count.
func (f *Finder) Unfinished(ctx context.Context, command string, cancelled bool) Search {
	return Search{
		command: command, notFound: "there is no unfinished run but those that are going on (obelus contexts lists all)",
		matches: func(name string, run journal.Run) (bool, error) {
			left, err := run.HasBackground(ctx, journal.In(f.Log, name))
			isOver := run.Status.Finished() && !left
			isGivenUp := run.Status == journal.RunCancelled && !cancelled
			if err != nil || isOver || isGivenUp {
				return false, err
			}
			holder, err := f.Log.Holder(ctx, name)
			return holder == "", err
		},
	}
}

// WithFailedCall matches the roots in which a call has failed or is in doubt.
func (f *Finder) WithFailedCall(ctx context.Context, command, call string) Search {
	return Search{
		command: command, notFound: fmt.Sprintf("no context has a call %s that has failed or is in doubt (obelus calls -c ID lists its calls)", call),
		matches: func(name string, _ journal.Run) (bool, error) {
			records, err := journal.In(f.Log, name).CurrentRecords(ctx)
			for _, r := range records {
				if r.Call == call && (r.Status == journal.Failed || r.Status == journal.InDoubt) {
					return true, err
				}
			}
			return false, err
		},
	}
}
