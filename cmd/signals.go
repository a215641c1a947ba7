package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"obelus/cmd/internal/exit"
	"obelus/engine"
)

// interruptible gives a context that the first interrupt or SIGTERM ends. The second one
// ends the process: it does not wait for draining. What a person interrupts goes on only
// when somebody resumes it, what SIGTERM ends also by itself.
func (a *app) interruptible() (context.Context, func()) {
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
			a.stopNow()
			if first == syscall.SIGTERM { // by which it goes on
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

// onInterrupt tells something once ctx is done, until the function that it gives is
// called: what is told stands before what is told then.
func onInterrupt(ctx context.Context, tell func()) (end func()) {
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		tell()
	})
	return func() {
		if !stop() {
			<-told
		}
	}
}

// atWork is the run that the command waits for.
type atWork struct {
	context string
	noted   chan struct{} // closed once the log has that it was interrupted
}

// whileDraining tells a person, once the run is interrupted, why it has not
// ended yet, until the function that it gives is called.
func (a *app) whileDraining(ctx context.Context, runner *engine.Runner, name string) func() {
	run := &atWork{context: name, noted: make(chan struct{})}
	runner.Interrupted = sync.OnceFunc(func() { close(run.noted) })
	a.atWork.Store(run)
	within := ""
	switch drain := cmp.Or(runner.Drain, engine.DefaultDrain); {
	case drain > 0:
		within = fmt.Sprintf(" within %s (the setting drain)", drain)
	}
	told := onInterrupt(ctx, func() {
		a.term.Unpause()
		a.term.Say("interrupted: what runs may come to its end%s; once more stops it now", within)
	})
	return func() {
		a.atWork.Store(nil)
		told()
	}
}

// stopNow waits for a moment until the log has that the run was interrupted, so that nobody
// goes on with it when the process has ended, and tells how to.
func (a *app) stopNow() {
	run := a.atWork.Load()
	if run == nil {
		return
	}
	select {
	case <-run.noted:
	case <-time.After(time.Second):
	}
	a.term.Tell("interrupted: it goes on only by: %s resume -c %s", a.again(), run.context)
}
