package engine

import (
	"context"
	"errors"
	"time"

	"obelus/engine/internal/crash"
	"obelus/engine/internal/logerr"
	"obelus/engine/plan"
	"obelus/store"
)

// result is the outcome of one attempt of a call.
type result struct {
	tick       *tickRun
	index      int
	step       int // the step that made its start; 0 if no worker ran
	value      plan.Result
	err        error
	attempts   int
	retry      *retry       // it failed, and is tried again
	pure       bool         // the log does not have that it ran
	unstarted  *start       // no result: the call is to run once the log has its start
	retryDue   bool         // no result: it is time for that
	paths      []store.Path // paths of the value in a recorded run; not nil then
	waitsFor   []string     // references that a delegate waits for; not nil if it waits
	waitsSince int64        // the journal's position when it began to wait
	release    func()       // to be called once the log has it, see [Runner.Acquire]; may be nil
}

// retry is a call that is tried again after a while.
type retry struct {
	start
	after time.Duration
}

// launch runs calls whose starts have been committed. A delegate is notified of an interruption,
// and drains by itself.
func (l *loop) launch(jobs []task) {
	for _, j := range jobs {
		l.assign(j)
	}
}

// assign gives a task to an idle worker, or to a new one. Workers stay until the run ends: their
// stacks have grown to the size that scripts need.
func (l *loop) assign(j task) {
	select {
	case l.tasks <- j:
	default:
		if !l.hired { // by the goroutine of the loop: workers come after the first
			l.hired = true
		}
		l.workers.Go(func() {
			growStack(j.index)
			l.work(j)
		})
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
			if j.child == nil { // attempts of a delegate are counted as they begin
				res.attempts = 1
			}
			l.leave(&res)
		}
	}()
	for more := true; more; working = more {
		res := j.do()
		working = false
		res.tick, res.step = j.tick, j.step
		if j, more = l.stepByWorker(j.run, &res); more {
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
// same worker. Where another goroutine has the lock, or the run is interrupted, the result is left
// to the goroutine of the loop.
func (l *loop) stepByWorker(run context.Context, res *result) (next task, more bool) {
	turn := l.lock
	if run.Err() != nil {
		turn = nil // no goroutine gets it
	}
	select {
	case turn <- struct{}{}:
	default:
		l.leave(res)
		return next, false
	}
	jobs := l.stepWithLock(run, res)
	if len(jobs) == 0 {
		return next, false
	}
	l.launch(jobs[1:])
	return jobs[0], true
}

// stepWithLock takes a step in a worker that has the lock, and gives the lock away: back to the
// goroutine of the loop where that has to act.
func (l *loop) stepWithLock(run context.Context, res *result) (jobs []task) {
	t, back, err := l.current, true, error(&brokenStep{})
	defer func() {
		if broken, ok := err.(*brokenStep); ok {
			broken.value = crash.WithPlace(recover())
		}
		if back {
			l.unlocked <- err
		} else {
			<-l.lock
		}
	}()
	// Its call goes on at once.
	jobs, wrong := t.stepWith(context.WithoutCancel(run), run, res, false)
	back = wrong != nil || !t.isActive() || t.state.AwaitsOutside() && !t.polling
	err = wrong
	return jobs
}

// brokenStep is a step in which a function of the embedder's panicked, or, without
// a value, ended its goroutine. The one that runs the loop goes on with the panic.
type brokenStep struct{ value any }

func (e *brokenStep) Error() string { return "a function that watches the run ended its goroutine" }

// leave hands a result over.
func (l *loop) leave(res *result) {
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
		if res.pure {
			t.notify(&t.state.Calls[res.index].Record)
		}
		switch {
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
