package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"obelus/engine/internal/crash"
	"obelus/engine/internal/logerr"
	"obelus/engine/plan"
)

// result is the outcome of one attempt of a call.
type result struct {
	tick       *tickRun
	index      int
	step       int // the step that made its start; 0 if no worker ran
	value      plan.Result
	err        error
	attempts   int
	retry      *retry      // it failed, and is tried again
	pure       bool        // the log does not have that it ran
	unstarted  *start      // no result: the call is to run once the log has its start
	retryDue   bool        // no result: it is time for that
	waitsFor   []string    // references that a delegate waits for; not nil if it waits
	waitsSince int64       // the journal's position when it began to wait
	reply      *plan.Reply // of a model that answered several calls, as it came; nil for any other
	due        time.Time   // the earliest time for which it waits; zero for none
	usage      *plan.Usage // of the model that was asked; nil where none was
	others     []*result   // results of the calls that the same request answered
	release    func()      // to be called once the log has it, see [Runner.Acquire]; may be nil
}

// retry is a call that is tried again after a while.
type retry struct {
	start
	after time.Duration
}

// launch gives calls whose starts have been committed to idle workers, or to new ones. Workers stay
// until the run ends: their stacks have grown to the size that scripts need. A delegate is notified
// of an interruption, and drains by itself.
func (l *loop) launch(tasks []task) {
	for _, j := range tasks {
		select {
		case l.tasks <- j:
		default:
			l.hasWorkers.Store(true)
			l.workers.Go(func() {
				growStack(j.index)
				l.work(j)
			})
		}
	}
}

// growStack gives a goroutine at once about as much stack as a script needs: where it grows
// by and by it is copied each time, which takes as long as a short call.
//
//go:noinline
func growStack(i int) byte {
	var room [14 << 10]byte
	return room[i%len(room)]
}

// work runs one job after another.
func (l *loop) work(j task) {
	working := true
	defer func() {
		if working {
			res := result{tick: j.tick, index: j.index, step: j.step, err: lostResult(recover())}
			j.resultsOfOthers(&res)
			if j.child == nil { // attempts of a delegate are counted as they begin
				res.attempts = 1
			}
			l.send(&res)
		}
	}()
	for more := true; more; working = more {
		res := j.do()
		working = false
		res.tick, res.step = j.tick, j.step
		j.resultsOfOthers(&res)
		if j, more = l.stepByWorker(&res); more {
			continue
		}
		select {
		case j = <-l.tasks:
			more = true
		case <-l.closed:
		}
	}
}

// lostResult is why a worker has no result: it panicked, in a delegate's run, or its
// goroutine was ended.
func lostResult(panicked any) error {
	if panicked == nil {
		return errors.New("it gave nothing back: its goroutine was ended")
	}
	return logerr.Wrap(&brokenStep{crash.WithPlace(panicked)})
}

// stepByWorker takes a step with a worker's result, and returns a call that starts with it for the
// same worker. A result that the worker can't take, it sends to the goroutine of the loop.
func (l *loop) stepByWorker(res *result) (next task, more bool) {
	if !l.tryLock() {
		l.send(res)
		return next, false
	}
	tasks := l.stepWithLock(res)
	if len(tasks) == 0 {
		return next, false
	}
	l.launch(tasks[1:])
	return tasks[0], true
}

// tryLock takes the lock for a worker, unless another goroutine has it or the run is to end.
func (l *loop) tryLock() bool {
	if l.isInterrupted() {
		return false
	}
	select {
	case l.lock <- struct{}{}:
		return true
	default:
		return false
	}
}

// stepWithLock takes a step in a worker that has the lock, and releases the lock: to the goroutine
// of the loop where that has to act.
func (l *loop) stepWithLock(res *result) (tasks []task) {
	t, loopActs, err := l.current, true, errGoroutineEnded
	defer func() {
		if panicked := recover(); panicked != nil {
			err = &brokenStep{crash.WithPlace(panicked)}
		}
		if loopActs {
			l.unlocked <- err
		} else {
			<-l.lock
		}
	}()
	tasks, err = t.stepWith(context.WithoutCancel(l.interrupt), res, false)
	loopActs = err != nil || !t.isActive() || isDue(t.state, l.opened) || t.state.AwaitsOutside() && t.listener == nil
	return tasks
}

// brokenStep is a step in which a function of the embedder's panicked. The goroutine of the loop
// goes on with the panic.
type brokenStep struct{ panicked any }

func (e *brokenStep) Error() string {
	return fmt.Sprint("a function that watches the run panicked: ", e.panicked)
}

var errGoroutineEnded = errors.New("a function that watches the run ended its goroutine")

// send hands a result to the goroutine of the loop.
func (l *loop) send(res *result) {
	select {
	case <-l.closed:
		res.drop()
		return
	default:
	}
	select {
	case l.results <- res:
	case <-l.closed:
		res.drop()
	}
}

// drop lets go of a result that the log will not have.
func (r *result) drop() {
	if r.release != nil {
		r.release()
		r.release = nil
	}
}

// undone reports whether the start of a result has been undone. Only calls without visible effects
// are launched before their step is in the log, and the call may have begun anew since.
func (t *tick) undone(res *result) bool {
	return res.step != 0 && res.step != t.state.Calls[res.index].Step
}

// receive settles calls that have ended, or records that they were cut off.
func (t *tick) receive(ctx context.Context, results []*result) error {
	for _, res := range results {
		if t.undone(res) {
			continue
		}
		t.noteUsage(res)
		if res.pure {
			t.notify(&t.state.Calls[res.index].Record)
		}
		switch {
		case res.retryDue && (t.stopping || t.ended != nil): // it is left to the next resume
		case res.retryDue:
			t.endPauses()
		case res.retry != nil:
			t.backOff(res)
		case res.unstarted != nil && t.stopping:
			t.requeue(res.index)
		case res.unstarted != nil:
			t.restart(*res.unstarted)
		case res.err == errUnbegun && t.ended == nil:
			t.requeue(res.index)
		case res.err == errUnbegun, res.err == errCut:
			t.cutOff(res.index, res.attempts)
		default:
			if err := t.complete(ctx, res); err != nil {
				return err
			}
		}
	}
	return nil
}
