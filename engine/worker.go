package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"obelus/engine/internal/crash"
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

// task is a call that a worker is to run.
type task struct {
	tick *tickRun
	run  context.Context
	start
}

// assign gives a task to an idle worker, or to a new one. Workers stay until the run ends: their
// stacks have grown to the size that scripts need.
func (l *loop) assign(j task) {
	select {
	case l.tasks <- j:
	default:
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
		res := j.tick.runCall(j.run, j.start)
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
	return &logError{&brokenStep{crash.WithPlace(panicked)}}
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

// runCall does one call.
func (t *tick) runCall(run context.Context, s start) result {
	working := t.loop.working
	if s.child != nil && t.runner.script.RunsInside(working, t.context, t.state.Calls[s.index].Record.Call) {
		inside, cancel := context.WithCancel(run)
		defer cancel()
		cut, stop := context.WithCancel(context.WithoutCancel(working))
		defer stop()
		// Its run is over before the runs inside it.
		defer context.AfterFunc(working, func() { cancel(); stop() })()
		s.child.runner.cut = cut
		res := s.child.start(inside)
		res.index = s.index
		return res
	}
	if t.runner.script.Recorded() {
		res := t.recordedResult(working, t.state.Calls[s.index].Record.Call)
		res.index, res.attempts = s.index, 1
		return res
	}
	pool := t.runner.pool
	defer pool.release(s.slot)
	if q := s.invocation.Question; q != nil {
		if err := t.readMessages(working, s.index, q); err != nil {
			return result{index: s.index, err: unreadLog(working, err)}
		}
	}
	ok := s.slot.wait(working)
	switch {
	case run.Err() != nil, pool.run.Err() != nil:
		// It got a slot while the run drained, or a slot that another delegate gave up before this
		// call was notified: a run is over before the runs inside it.
		return result{index: s.index, err: errUnbegun}
	case !ok || working.Err() != nil:
		return result{index: s.index, err: errCut}
	}
	if t.runner.Acquire == nil {
		return t.execute(working, s)
	}
	return t.executeAcquired(run, s)
}

func (t *tick) execute(working context.Context, s start) result {
	if s.speculative != nil {
		return t.trySpeculative(working, s)
	}
	return t.attempt(working, s, 0, s.activity.Activity.Run)
}

// executeAcquired runs a call once its resources are acquired.
func (t *tick) executeAcquired(run context.Context, s start) (res result) {
	release, ok := t.runner.Acquire(run)
	if !ok {
		return result{index: s.index, err: errUnbegun}
	}
	defer func() {
		if res.release == nil { // it begins anew, or broke down
			release()
		}
	}()
	res = t.execute(t.loop.working, s)
	if res.unstarted == nil {
		res.release = release
	}
	return res
}

// Errors of calls that are stopped with their run. They are not exported: an activity that gave up
// work of its own, even with the error of a context, has failed like any other.
var (
	errCut     = errors.New("it was cut off")
	errUnbegun = errors.New("it had not begun when the run was stopped")
)

// longestBackoff is what can be doubled without an overflow.
const longestBackoff = time.Duration(math.MaxInt64 / 4)

// attempt runs a call. After a failure that is to be retried it returns the call for the pause,
// with its slot; a fire-and-forget call, which may outlive its tick, keeps both. See [runOnce] for
// within.
func (t *tick) attempt(ctx context.Context, s start, within time.Duration, do plan.ActivityFunc) result {
	res := result{index: s.index}
	for {
		res.attempts++
		s.invocation.Attempt++
		res.value, res.err = runOnce(ctx, s.doer, s.activity.Timeout, within, do, s.invocation)
		if !s.triesAgain(res.err) {
			return res
		}
		pause := s.backoff(t.runner.jitter)
		if !t.plan.Calls[s.index].FireAndForget() {
			res.retry = &retry{start: s, after: pause}
			return res
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return result{index: s.index, err: errCut, attempts: res.attempts}
		}
	}
}

// triesAgain reports whether a call is to be retried after an error. Whether a call that timed out
// has had an effect is unknown: a call that must not run twice is not retried.
func (s *start) triesAgain(err error) bool {
	failure, failed := errors.AsType[*plan.Failure](err)
	return failed && failure.Fields["retry"] != false && s.invocation.Attempt <= s.activity.Retries &&
		!(s.activity.NotIdempotent && failure.Fields["code"] == "timeout")
}

// backoff is how long a call is not tried again.
func (s *start) backoff(jitter func(time.Duration) time.Duration) time.Duration {
	if jitter == nil {
		jitter = rand.N[time.Duration]
	}
	span := min(cmp.Or(s.activity.Backoff, plan.DefaultBackoff), longestBackoff)
	for range s.invocation.Attempt - 1 {
		span = min(2*span, longestBackoff)
	}
	return span/2 + jitter(span)
}

// runOnce runs a call under its deadline. A later result is ignored, whatever it is: an activity
// seldom says that it gave up for the deadline. A panic of a Go activity becomes an error of the
// call. A call that is told to stop may end in any way: without a result it is cut off. Where
// within is not 0 it is told to stop that soon.
func runOnce(ctx context.Context, name string, timeout, within time.Duration, do plan.ActivityFunc, in plan.Invocation) (_ plan.Result, err error) {
	timeout = cmp.Or(timeout, plan.DefaultTimeout)
	began := time.Now()
	deadline := began.Add(timeout)
	limited, cancel := context.WithDeadline(ctx, began.Add(cmp.Or(within, timeout)))
	defer cancel()
	late := func() bool { return !time.Now().Before(deadline) }
	defer func() {
		switch p := recover(); {
		case p != nil && ctx.Err() != nil:
			err = errCut
		case p != nil && late():
			err = timedOut(timeout, nil)
		case p != nil:
			err = crash.PanicError("the activity "+name+" broke down", p)
		}
	}()
	res, err := do(limited, in)
	if err != nil && ctx.Err() != nil {
		return plan.Result{}, errCut
	}
	if late() {
		return plan.Result{}, timedOut(timeout, err)
	}
	return plan.NormalizeResult(name, res, err)
}

// timedOut is the failure of a call whose time is over, with the place at which the
// activity, if it knows, was by then.
func timedOut(after time.Duration, said error) error {
	fields := map[string]any{"message": fmt.Sprintf("timed out after %s", after), "code": "timeout"}
	if own, ok := errors.AsType[*plan.Failure](said); ok && own.Fields["code"] == "timeout" && own.Fields["script"] != nil {
		fields["script"] = own.Fields["script"]
	}
	return &plan.Failure{Fields: fields}
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
