package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/engine"
	"obelus/host"
)

// watchPlan runs a plan, and again whenever it or the project's scripts change, until ctx is done.
func watchPlan(ctx context.Context, a *app, plan string, start engine.Start, o runOptions) error {
	reloads := make(chan host.Reload, 100)
	watched := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		if err := a.host.Watch(watching, func(r host.Reload) {
			select {
			case reloads <- r:
			case <-watching.Done():
			}
		}, plan); err != nil {
			watched <- err
		}
	}()
	for {
		if err := runPlan(ctx, a, plan, start, o); err != nil {
			a.fail(err)
		}
		if ctx.Err() != nil {
			return exit.Interrupted
		}
		a.term.Infof("watching %s: interrupt to end", a.dir)
		for changed := false; !changed || len(reloads) > 0; {
			select {
			case <-ctx.Done():
				return exit.Interrupted
			case err := <-watched:
				return err
			case r := <-reloads:
				reportReload(a, r)
				changed = changed || r.Err == nil
			}
		}
	}
}

// reportReload prints which scripts have been loaded, or the error that keeps the old ones.
func reportReload(a *app, r host.Reload) {
	if r.Err != nil {
		a.term.Error(fmt.Errorf("%w\nthe scripts stay as they were (generation %d)", withSource(r.Err), r.Generation.Number))
		return
	}
	a.term.Infof("generation %d: %s (%s)", r.Generation.Number, reloadedFiles(r), human.Duration(r.Took))
	if len(r.Pending) > 0 {
		a.term.Error(errors.New(pendingText(r)))
	}
}

// pendingText says which settings take effect only when the host is started again.
func pendingText(r host.Reload) string {
	granted := func(name string) bool { return name == "allow" || name == "serve.tokens" }
	if r.Withheld && !slices.ContainsFunc(r.Pending, func(name string) bool { return !granted(name) }) {
		return fmt.Sprintf("%s grants more than before: that counts when the host is started again, or on SIGHUP under serve", host.SettingsFile)
	}
	return fmt.Sprintf("%s: a change of %s counts when the host is started again", host.SettingsFile, strings.Join(r.Pending, " and "))
}

// reloadedFiles names the files that were added, changed or removed.
func reloadedFiles(r host.Reload) string {
	var parts []string
	for _, part := range []struct {
		what  string
		files []string
	}{{"added", r.Added}, {"changed", r.Changed}, {"removed", r.Removed}} {
		if len(part.files) > 0 {
			parts = append(parts, part.what+" "+strings.Join(part.files, " "))
		}
	}
	if len(parts) == 0 {
		return "nothing has changed"
	}
	return strings.Join(parts, ", ")
}
