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

// result is what a worker brings back.
type result struct {
	tick     *tick
	index    int
	step     int // in which the start was made that it is of; 0 for what no worker brings
	value    plan.Result
	err      error
	attempts int
	again    *again       // it failed, and is tried again
	unseen   bool         // the log does not have that it ran
	behind   *start       // no result: it is to run once the log has that it begins
	rested   bool         // no result: it is time for that
	paths    []store.Path // where the value went, of a call that is replayed; not nil then
	waits    []string     // what a delegate waits for; not nil if it does
	seen     int64        // the journal's position when it began to
	release  func()       // to be called once the log has it, see [Runner.Acquire]; may be nil
}

func (r *Runner) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// launch lets calls run whose starts have been committed. A delegate is told
// when the run is interrupted, and drains by itself.
func (l *loop) launch(jobs []job) {
	for _, j := range jobs {
		l.hand(j)
	}
}

// job is a call that a worker is to run.
type job struct {
	tick *tick
	run  context.Context
	start
}

// hand gives a job to a worker that waits for one, or to a new one. Workers stay
// until the run ends: their stacks have grown to what a script needs.
func (l *loop) hand(j job) {
	select {
	case l.jobs <- j:
	default:
		l.workers.Go(func() {
			growStack(j.index)
			l.serve(j)
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

// serve runs one job after another.
func (l *loop) serve(j job) {
	working := true
	defer func() {
		if working {
			res := result{tick: j.tick, index: j.index, step: j.step, err: lost(recover())}
			if j.room == nil { // a delegate's tries are counted as they begin
				res.attempts = 1
			}
			l.leave(&res)
		}
	}()
	for more := true; more; working = more {
		res := j.tick.work(j.run, j.start)
		working = false
		res.tick, res.step = j.tick, j.step
		if j, more = l.proceed(j.run, &res); more {
			continue
		}
		select {
		case j = <-l.jobs:
			more = true
		case <-l.closed:
		}
	}
}

// lost is why a worker has no result: it panicked, in a delegate's run, or its
// goroutine was ended.
func lost(panicked any) error {
	if panicked == nil {
		return errors.New("it gave nothing back: its goroutine was ended")
	}
	return &logError{&brokenStep{crash.WithPlace(panicked)}}
}

// proceed takes a step with the result that a worker has, and gives it a call
// that starts with that. Where somebody else has the turn, or the run is
// interrupted, the result is left to the one that runs the loop.
func (l *loop) proceed(run context.Context, res *result) (next job, more bool) {
	turn := l.turn
	if run.Err() != nil {
		turn = nil // nobody gets it
	}
	select {
	case turn <- struct{}{}:
	default:
		l.leave(res)
		return next, false
	}
	jobs := l.takeTurn(run, res)
	if len(jobs) == 0 {
		return next, false
	}
	l.launch(jobs[1:])
	return jobs[0], true
}

// takeTurn takes a step by one who has the turn, and gives the turn away: back to
// the one that runs the loop where that has to know.
func (l *loop) takeTurn(run context.Context, res *result) (jobs []job) {
	t, back, err := l.current, true, error(&brokenStep{})
	defer func() {
		if broken, ok := err.(*brokenStep); ok {
			broken.value = crash.WithPlace(recover())
		}
		if back {
			l.back <- err
		} else {
			<-l.turn
		}
	}()
	jobs, wrong := t.take(context.WithoutCancel(run), run, res, false) // its call goes on at once
	back = wrong != nil || !t.active() || t.looks() && !t.looking
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

// work does one call.
func (t *tick) work(run context.Context, s start) result {
	working := t.loop.working
	if s.room != nil && t.runner.script.RunsInside(working, t.context, t.calls[s.index].record.Call) {
		inside, cancel := context.WithCancel(run)
		defer cancel()
		cut, stop := context.WithCancel(context.WithoutCancel(working))
		defer stop()
		defer context.AfterFunc(working, func() { cancel(); stop() })() // its run is over before what runs in it
		s.room.runner.cut = cut
		res := s.room.enter(inside)
		res.index = s.index
		return res
	}
	if t.runner.script.Recorded() {
		res := t.recordedResult(working, t.calls[s.index].record.Call)
		res.index, res.attempts = s.index, 1
		return res
	}
	pool := t.runner.pool
	defer pool.leave(s.slot)
	if q := s.invocation.Question; q != nil {
		if err := t.readMessages(working, s.index, q); err != nil {
			return result{index: s.index, err: unreadLog(working, err)}
		}
	}
	ok := s.slot.wait(working)
	switch {
	case run.Err() != nil, pool.run.Err() != nil:
		// It came to a slot while the run drained, or to one that another delegate
		// gave up before this call's was told: a run is over before those in it are.
		return result{index: s.index, err: errUnbegun}
	case !ok || working.Err() != nil:
		return result{index: s.index, err: errCut}
	}
	if t.runner.Acquire == nil {
		return t.do(working, s)
	}
	return t.doAcquired(run, s)
}

func (t *tick) do(working context.Context, s start) result {
	if s.ahead != nil {
		return t.tryAhead(working, s)
	}
	return t.attempt(working, s, 0, s.activity.Activity.Run)
}

// doAcquired does a call once what it needs is there.
func (t *tick) doAcquired(run context.Context, s start) (res result) {
	release, ok := t.runner.Acquire(run)
	if !ok {
		return result{index: s.index, err: errUnbegun}
	}
	defer func() {
		if res.release == nil { // it begins anew, or broke down
			release()
		}
	}()
	res = t.do(t.loop.working, s)
	if res.behind == nil {
		res.release = release
	}
	return res
}

// What becomes of a call that is stopped with its run. They are of this package
// alone: that an activity gave up something of its own, for which it may have the
// error of a context too, is a failure like any other.
var (
	errCut     = errors.New("it was cut off")
	errUnbegun = errors.New("it had not begun when the run was stopped")
)

// longestBackoff is what can be doubled without an overflow.
const longestBackoff = time.Duration(math.MaxInt64 / 4)

// attempt runs a call. After a failure that its activity wants to be tried again it is
// handed back until then, with its place; but a call for which nobody waits, and which may
// outlive its tick, keeps both. See [once] for within.
func (t *tick) attempt(ctx context.Context, s start, within time.Duration, do plan.ActivityFunc) result {
	res := result{index: s.index}
	for {
		res.attempts++
		s.invocation.Attempt++
		res.value, res.err = once(ctx, s.doer, s.activity.Timeout, within, do, s.invocation)
		if !s.triesAgain(res.err) {
			return res
		}
		pause := s.backoff(t.runner.jitter)
		if !t.plan.Calls[s.index].FireAndForget() {
			res.again = &again{start: s, after: pause}
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

// triesAgain tells whether a call is to be tried again after what it came to. What a call
// has done whose time is over, nobody knows: so one that must not run twice is not.
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

// once runs a call under its deadline. What comes after that counts for nothing,
// whatever it is: an activity that gives up then seldom says that it is for that.
// A panic of a Go activity is its own fault, and nobody else's. One that is told to
// stop may end however it likes: unless it comes to a result it is cut off. Where within is
// not 0 it is told to stop that soon.
func once(ctx context.Context, name string, timeout, within time.Duration, do plan.ActivityFunc, in plan.Invocation) (_ plan.Result, err error) {
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

// undone tells of a result whose start has been undone. Only calls that nobody can see are
// launched before their step is in the log, and the call may have begun anew since.
func (t *tick) undone(res *result) bool {
	return res.step != 0 && res.step != t.calls[res.index].step
}

// receive settles calls that have ended, or records that they were cut off.
func (t *tick) receive(ctx context.Context, results []*result) error {
	for _, res := range results {
		if t.undone(res) {
			continue
		}
		if res.unseen {
			t.observe(&t.calls[res.index].record)
		}
		switch {
		case res.rested:
			t.wake()
		case res.again != nil:
			t.rest(res)
		case res.behind != nil && t.stopping:
			t.putBack(res.index)
		case res.behind != nil:
			t.begin(*res.behind)
		case res.err == errUnbegun && t.ending == nil:
			t.putBack(res.index)
		case res.err == errUnbegun, res.err == errCut:
			t.cutOff(res.index, res.attempts)
		default:
			if err := t.settle(ctx, res); err != nil {
				return err
			}
		}
	}
	return nil
}
