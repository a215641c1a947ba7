// Package prune removes whole contexts from a log: it chooses the contexts that a user asked for
// and that are not in use, and removes them while others append.
package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"obelus/cmd/internal/exit"
	"obelus/engine/journal"
	"obelus/store"
)

// Choice says which contexts go. A zero field does not restrict it.
type Choice struct {
	Names    []string  // whole names of root contexts; each must be able to go
	Before   time.Time // contexts that were last appended to before
	Statuses []string  // contexts whose newest run has one of these statuses; "none" is no run
	DryRun   bool      // remove nothing
	Command  string    // how the command is called from here, for hints
}

// maxTries is how often contexts are chosen anew when others change the same ones.
const maxTries = 10

// Remove removes the contexts from a log, together with their delegates' contexts, and chooses anew
// as long as others change them in between. It returns the root contexts that are gone and the
// number of delegates' contexts that went with them, also with an error that ended it.
func (c *Choice) Remove(ctx context.Context, log store.Log) (removed []string, delegates int, err error) {
	for range maxTries {
		var t *tree
		if t, err = readTree(ctx, log); err != nil {
			break
		}
		var chosen []string
		if chosen, err = c.choose(ctx, log, t); err != nil {
			break
		}
		gone, inside, failed := c.removeChosen(ctx, log, t, chosen)
		removed, delegates, err = append(removed, gone...), delegates+inside, failed
		if !c.isOutdated(err) {
			break
		}
	}
	return removed, delegates, err
}

// isOutdated reports whether an error says that the chosen contexts have changed meanwhile, so that
// another choice may succeed. A named context that can't go is an error for the user.
func (c *Choice) isOutdated(err error) bool {
	var changed *store.ChangedError
	var needed *store.NeededError
	var held *store.HeldError
	byName := len(c.Names) > 0
	return errors.As(err, &changed) || !byName && (errors.As(err, &needed) || errors.As(err, &held) || errors.Is(err, store.ErrNoContext))
}

// Contexts that are not named are removed in portions, with a pause between: a process that waits
// to append tries again every few milliseconds.
const (
	portionMessages = 10_000 // some tenths of a second
	portionPause    = 20 * time.Millisecond
)

// removeChosen removes root contexts together with their delegates' contexts, unless they have
// changed since they were chosen: all at once if they are named, else in portions.
func (c *Choice) removeChosen(ctx context.Context, log store.Admin, t *tree, chosen []string) (removed []string, delegates int, err error) {
	chosen = t.forksFirst(chosen)
	var portion []store.ContextInfo
	messages := int64(0)
	for i, name := range chosen {
		for _, member := range t.members(name) {
			portion = append(portion, t.infos[member])
			messages += t.infos[member].Messages
		}
		if last := i == len(chosen)-1; !last && (len(c.Names) > 0 || messages < portionMessages) {
			continue
		}
		if !c.DryRun {
			if len(removed) > 0 {
				time.Sleep(portionPause)
			}
			if err := log.Prune(ctx, portion...); err != nil {
				return removed, delegates, err
			}
		}
		roots := i + 1 - len(removed)
		removed, delegates = chosen[:i+1], delegates+len(portion)-roots
		portion, messages = nil, 0
	}
	return removed, delegates, nil
}

// choose returns the root contexts that go. It is an error if a named one can't.
func (c *Choice) choose(ctx context.Context, log store.Reader, t *tree) ([]string, error) {
	for _, name := range c.Names {
		if _, ok := t.infos[name]; !ok {
			return nil, fmt.Errorf("%w: %s (obelus contexts lists them; prune takes whole names)", store.ErrNoContext, name)
		}
	}
	var chosen []string
	for _, name := range t.roots {
		if len(c.Names) > 0 && !slices.Contains(c.Names, name) || !c.Before.IsZero() && !t.infos[name].Updated.Before(c.Before) {
			continue
		}
		run, err := journal.In(log, name).CurrentRun(ctx)
		if err != nil {
			return nil, err
		}
		status := string(run.Status)
		if status == "" {
			status = "none"
		}
		if len(c.Statuses) > 0 && !slices.Contains(c.Statuses, status) {
			continue
		}
		goes, err := c.mayGo(ctx, log, t, name, run)
		if err != nil {
			return nil, err
		}
		if goes {
			chosen = append(chosen, name)
		}
	}
	for _, name := range c.Names {
		if t.infos[name].Origin.Parent != "" {
			return nil, exit.Usagef("context %s is a delegate's: it goes with %s", name, t.infos[name].Origin.Parent)
		}
	}
	return t.withoutNeeded(chosen, len(c.Names) > 0)
}

// mayGo reports whether no run of a context, or of its delegates' contexts, is unfinished. If the
// context is named, an unfinished run is an error.
func (c *Choice) mayGo(ctx context.Context, log store.Reader, t *tree, name string, run journal.Run) (bool, error) {
	unfinished, run, err := findUnfinished(ctx, log, t, name, run)
	switch named := slices.Contains(c.Names, name); {
	case err != nil:
		return false, err
	case unfinished == "":
		return true, nil
	case !named:
		return false, nil
	case run.Status == journal.RunRunning:
		return false, exit.Usagef("context %s is running, and stays until that has come to its end or was interrupted", unfinished)
	case run.Status.Finished() && t.infos[unfinished].Holder != "":
		return false, exit.Usagef("calls of context %s are at work in the background, and it stays until they have ended", unfinished)
	case run.Status.Finished():
		return false, exit.Usagef("calls of context %s have not ended in the background, and it stays: %s resume -c %[1]s goes on with them, cancel gives them up", unfinished, c.Command)
	default:
		return false, exit.Usagef("context %s is unfinished (%s), and stays: %s cancel -c %[1]s gives it up", unfinished, run.Status, c.Command)
	}
}

// findUnfinished finds a run that is unfinished and not cancelled, in a context or in its
// delegates' contexts that are part of no other run, or calls in the background of any of these. It
// returns the name of the context, or "".
func findUnfinished(ctx context.Context, log store.Reader, t *tree, name string, run journal.Run) (context string, _ journal.Run, err error) {
	untouched, err := isUntouchedFork(ctx, log, name)
	if err != nil || !isOver(run) && !untouched {
		return name, run, err
	}
	for _, member := range t.members(name) {
		if t.infos[member].Standing.Background > 0 && !untouched {
			return member, run, nil
		}
	}
	for _, member := range t.members(name)[1:] {
		root, err := journal.In(log, member).Root(ctx)
		if err != nil {
			return member, run, err
		}
		if root != member {
			continue
		}
		if run, err = journal.In(log, member).CurrentRun(ctx); err != nil || !isOver(run) {
			return member, run, err
		}
	}
	return "", run, nil
}

func isOver(run journal.Run) bool { return run.Status.Finished() || run.Status == journal.RunCancelled }

// isUntouchedFork reports whether a context is a fork to which nothing has been appended: nothing
// of its own would be lost.
func isUntouchedFork(ctx context.Context, log store.Reader, name string) (bool, error) {
	entry, ok, err := store.Newest(ctx, log, store.JournalFilter{Context: name})
	return ok && journal.Forked(entry), err
}
