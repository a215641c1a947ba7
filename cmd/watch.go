package cmd

import (
	"context"

	"obelus/cmd/internal/exit"
	"obelus/host"
)

// runOnChange runs something, and again whenever the project's scripts or further files change, as
// [host.Host.Watch] has them, until ctx is done.
func runOnChange(ctx context.Context, a *app, run func() error, files ...string) error {
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
		}, files...); err != nil {
			watched <- err
		}
	}()
	for {
		if err := run(); err != nil {
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
				printReload(a.term, r, withSource)
				a.setLogLevel(r.Generation.Settings().Log)
				changed = changed || r.Err == nil
			}
		}
	}
}
