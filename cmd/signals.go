package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"obelus/cmd/internal/exit"
	"obelus/engine"
)

// withSignals returns a context that the first interrupt or SIGTERM ends. The second one ends the
// process, without draining. After an interrupt only a person resumes the run; after SIGTERM a
// server does so too.
func (a *app) withSignals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first, ok := <-signals
		if !ok {
			return
		}
		a.term.Interrupted(first)
		if first == syscall.SIGTERM {
			cancel(engine.ErrStopped)
		} else {
			cancel(context.Canceled)
		}
		if second, ok := <-signals; ok {
			a.term.Interrupted(second)
			a.finishInterrupt()
			if run := a.current.Load(); run != nil && run.concluded.Load() != nil {
				os.Exit(int(exitStatus(run.concluded.Load().status)))
			}
			if first == syscall.SIGTERM { // a server may go on with the run
				os.Exit(int(exit.Terminated))
			}
			os.Exit(int(exit.Interrupted))
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// onInterrupt calls print once ctx is done, until the returned function is called, which waits for
// print to return.
func onInterrupt(ctx context.Context, print func()) (end func()) {
	printed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(printed)
		print()
	})
	return func() {
		if !stop() {
			<-printed
		}
	}
}

// currentRun is the run that the command waits for.
type currentRun struct {
	context  string
	recorded chan struct{} // closed once the log holds that the run was interrupted

	concluded atomic.Pointer[conclusion] // nil while its output is not known
}

// announceDraining prints why a run that was interrupted has not ended yet, until the returned
// function is called.
func (a *app) announceDraining(ctx context.Context, runner *engine.Runner, name string) func() {
	run := &currentRun{context: name, recorded: make(chan struct{})}
	runner.Interrupted = sync.OnceFunc(func() { close(run.recorded) })
	a.current.Store(run)
	within := ""
	if drain := cmp.Or(runner.Drain, engine.DefaultDrain); drain > 0 {
		within = fmt.Sprintf(" within %s (the setting drain)", drain)
	}
	end := onInterrupt(ctx, func() {
		a.term.Unpause()
		a.term.Infof("interrupted: what runs may come to its end%s; once more stops it now", within)
	})
	return func() {
		a.current.Store(nil)
		end()
	}
}

// finishInterrupt waits up to a second until the log holds that the run was interrupted, so that no
// server goes on with it, and prints how to resume it.
func (a *app) finishInterrupt() {
	run := a.current.Load()
	if run == nil {
		return
	}
	select {
	case <-run.recorded:
	case <-time.After(time.Second):
	}
	a.term.Noticef("interrupted: it goes on only by: %s resume -c %s", a.commandPrefix(), run.context)
}
