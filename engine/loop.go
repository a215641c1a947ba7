package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"obelus/store"
)

// Modes of a plan.
const (
	modeEager = "eager"
	modeLazy  = "lazy"
)

// leaseFor is how long a run that has died on another machine keeps others out
// of its context. One that is alive renews its lease long before.
const (
	leaseFor   = 30 * time.Second
	leaseRenew = leaseFor / 3
)

// loop is a run: one tick after another, from where it begins or is resumed to
// where it comes to a halt. It holds the context's lease meanwhile. It belongs to
// the goroutine that has the turn: the one that runs it, and while that waits
// each worker that brings a result, so that a step needs no other goroutine.
type loop struct {
	runner  *Runner
	context string
	origin  store.Origin
	request *Request // nil if the run is resumed and the plan's file is not at hand
	made    bool     // it has been received
	opening []store.Message
	input   bool // the last message of the opening is the run's input
	view    *store.View
	fresh   bool // the view has just been opened
	policy  Policy

	declared map[string]declaration // by kind

	tick    int    // the number of the newest tick, 0 before the first
	first   int    // the tick with which the run began
	n       int64  // the journal's position after its last append
	begun   bool   // its first append is in the log
	started func() // to be called then; may be nil
	halted  bool   // as the journal has it, the run is not under way

	epoch  int64  // of the lease, 0 without
	forget func() // ends its renewal

	working context.Context // what runs may end after the run is told to
	stop    context.CancelFunc
	workers sync.WaitGroup
	jobs    chan job
	results chan *result  // that came while somebody had the turn
	closed  chan struct{} // nobody takes results any more
	turn    chan struct{} // holds one token while somebody has the turn
	back    chan error    // gives the turn back to the one that runs the loop
	current *tick
	behind  []*tick // ticks that are over, but for fire-and-forget calls
}

func (r *Runner) newLoop(ctx context.Context, name string) (*loop, error) {
	view, err := store.OpenView(ctx, r.Log, name)
	if err != nil {
		return nil, err
	}
	runner := *r
	if runner.pool == nil {
		runner.pool = newPool(r.parallel())
	}
	l := &loop{
		runner: &runner, context: name, view: view, declared: map[string]declaration{}, forget: func() {},
		jobs: make(chan job), results: make(chan *result, 64), closed: make(chan struct{}),
		turn: make(chan struct{}, 1), back: make(chan error, 1),
	}
	l.turn <- struct{}{}
	l.working, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	if r.cut != nil { // a delegate does not drain on when its call is cut off
		context.AfterFunc(r.cut, l.stop)
	}
	return l, nil
}

// close lets go of what the loop holds, however it came to its end.
func (l *loop) close() {
	l.stop()
	close(l.closed)
	l.abandon()
	l.forget()
	if l.epoch != 0 {
		// A lease that can't be given back lapses by itself, now that nobody
		// renews it.
		_ = l.append(context.Background(), store.Batch{ExpectSeq: store.AnySeq}, 0)
	}
}

// append adds a batch as the one that runs the context, and keeps its lease for
// a while; for none gives it back.
func (l *loop) append(ctx context.Context, b store.Batch, hold time.Duration) error {
	b.Context = l.context
	b.Lease = &store.Lease{Epoch: l.epoch, For: hold}
	appended, err := l.runner.Log.Append(ctx, b)
	var held *store.HeldError
	if errors.As(err, &held) {
		if l.epoch != 0 {
			l.forget()
		}
		l.epoch = 0
		return &BusyError{l.context, held.Holder}
	}
	if err != nil {
		return err
	}
	l.n = appended.N
	switch {
	case hold == 0:
		l.forget()
		l.epoch = 0
	case l.epoch == 0:
		l.epoch = appended.Epoch
		l.keep()
	}
	return nil
}

// take takes the lease before anything is appended.
func (l *loop) take(ctx context.Context) error {
	return l.append(ctx, store.Batch{ExpectSeq: store.AnySeq}, leaseFor)
}

// keep renews the lease from now on, whatever the run is at: its planner may
// think for long, and its calls may drain. A lease that can't be renewed is
// noticed by the next append.
func (l *loop) keep() {
	ctx, cancel := context.WithCancel(context.Background())
	batch := store.Batch{Context: l.context, ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: l.epoch, For: leaseFor}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(leaseRenew)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, _ = l.runner.Log.Append(ctx, batch)
			}
		}
	}()
	l.forget = func() {
		cancel()
		<-ended
	}
}

// next waits for a result, until it is time, or for the end of ctx: then there is
// none. Results come before all else, so that chance decides nothing.
func (l *loop) next(ctx context.Context, until <-chan time.Time) *result {
	select {
	case res := <-l.results:
		return res
	default:
	}
	select {
	case res := <-l.results:
		return res
	case <-until:
	case <-ctx.Done():
	}
	return nil
}

// wait gives the turn away until there is a result that no worker could take
// itself, the tick does not go on by itself, it is time, or for the end of ctx.
// An error is that of a worker's step.
func (l *loop) wait(ctx context.Context, until <-chan time.Time) (res *result, err error) {
	select {
	case res = <-l.results:
		return res, nil
	default:
	}
	<-l.turn
	select {
	case res = <-l.results:
	case <-until:
	case <-ctx.Done():
	case err = <-l.back:
		return nil, err
	}
	select {
	case l.turn <- struct{}{}:
	case err = <-l.back:
	}
	return res, err
}

// come gives the results of a tick that have come, so that one append commits
// them together, the first among them. Those of other ticks are recorded.
func (l *loop) come(ctx context.Context, t *tick, first *result) ([]*result, error) {
	var mine []*result
	var others map[*tick][]*result
	for res, more := first, true; more; {
		if res.tick == t {
			mine = append(mine, res)
		} else {
			if others == nil {
				others = map[*tick][]*result{}
			}
			others[res.tick] = append(others[res.tick], res)
		}
		select {
		case res = <-l.results:
		default:
			more = false
		}
	}
	for of, results := range others {
		if err := of.record(ctx, func() error { return of.receive(ctx, results) }); err != nil {
			return nil, err
		}
	}
	return mine, nil
}

// run goes on from tick to tick. t, if it is not nil, is one that was under
// way. A panic of a worker's step goes on here.
func (l *loop) run(ctx context.Context, t *tick) (*Outcome, error) {
	outcome, err := l.ticks(ctx, t)
	if broken := (*brokenStep)(nil); errors.As(err, &broken) && broken.value != nil {
		panic(broken.value)
	}
	return outcome, err
}

func (l *loop) ticks(ctx context.Context, t *tick) (*Outcome, error) {
	for conflicts := 0; conflicts < maxConflicts; conflicts++ {
		if t == nil {
			var err error
			if t, err = l.begin(ctx); err != nil {
				if ctx.Err() != nil && l.request != nil && l.request.Planner != nil {
					return l.cut(ctx)
				}
				return nil, err
			}
		}
		outcome, err := t.run(ctx)
		var conflict *store.ConflictError
		switch {
		case !t.begun && errors.As(err, &conflict):
			t = nil
			continue
		case err != nil || outcome != nil:
			return outcome, err
		}
		if t.detached > 0 {
			l.behind = append(l.behind, t)
		}
		t, conflicts = nil, 0
	}
	return nil, fmt.Errorf("context %s is appended to by others all the time: gave up after %d tries", l.context, maxConflicts)
}

// cut ends a run that was interrupted while its planner was asked. Nothing of
// the new tick is recorded; if it is the first, nothing at all.
func (l *loop) cut(run context.Context) (*Outcome, error) {
	if !l.begun {
		return &Outcome{Status: RunCancelled}, nil
	}
	ctx := context.Background()
	err := l.drain(ctx, nil, func(t *tick) int { return t.detached })
	if err == nil {
		end := runEvent{Tick: l.tick, Status: RunCancelled, Over: true, Stopped: stopped(run)}
		err = l.append(ctx, store.Batch{ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: eventRun, Data: text(end)}}}, leaseFor)
	}
	return &Outcome{Context: l.context, Status: RunCancelled}, err
}

// stopped tells whether a run that is interrupted is to be resumed.
func stopped(run context.Context) bool { return errors.Is(context.Cause(run), ErrStopped) }

// begin stages what the next tick appends: what the run begins with, and the
// plan.
func (l *loop) begin(ctx context.Context) (*tick, error) {
	if l.begun {
		if err := l.runner.replay.arriveBefore(ctx, l.context, l.tick+1); err != nil {
			return nil, err
		}
	}
	if !l.fresh {
		if _, err := l.view.Refresh(ctx); err != nil {
			return nil, err
		}
	}
	l.fresh = false
	l.halted = false // a plan's event says so too
	if !l.begun {
		if err := l.enter(ctx); err != nil {
			return nil, err
		}
	}
	number := l.tick + 1
	request, problem, err := l.solve(ctx, number)
	if err != nil {
		return nil, err
	}
	start := l.view.Seq()
	plan := emptyPlan()
	if problem == nil {
		plan, err = l.compile(ctx, request, false)
		var refused *PlanError
		if errors.As(err, &refused) && request.Planner != nil {
			plan, problem, err = emptyPlan(), refused, nil
		}
		if err != nil {
			return nil, err
		}
	}
	event := l.event(number, start, plan, request)
	if problem == nil {
		l.view.Stage(planOf(request))
		event.Seq = l.view.Seq()
	}
	t := newTick(l, plan, event)
	t.problem = problem
	t.journal(store.Entry{Event: eventPlan, Data: text(event)})
	return t, nil
}

// enter stages what a run begins with.
func (l *loop) enter(ctx context.Context) error {
	var last Run
	if !l.view.Absent() {
		var err error
		if last, err = l.finished(ctx); err != nil {
			return err
		}
	}
	l.tick, l.first = last.Tick, last.Tick+1
	return l.open(ctx)
}

// finished gives the context's newest run, which must have come to its end.
func (l *loop) finished(ctx context.Context) (Run, error) {
	before := Run{}
	for {
		last, err := LastRun(ctx, l.runner.Log, l.context)
		if err != nil || last.Status.Finished() {
			return last, err
		}
		if last.Tick == before.Tick && last.Status == before.Status { // and it had no holder
			return last, &UnfinishedError{l.context, last.Status}
		}
		holder, err := l.runner.Log.Holder(ctx, l.context)
		if err != nil {
			return last, err
		}
		if holder != "" {
			return last, &BusyError{l.context, holder}
		}
		before = last // unless it has ended just now
	}
}

// open stages the messages that the run brings.
func (l *loop) open(ctx context.Context) error {
	err := admit(ctx, l.view, l.opening)
	var refused *MessageError
	if errors.As(err, &refused) {
		refused.Input = l.input && refused.Number == len(l.opening)
	}
	return err
}

// solve gives the request with the calls and the output of the next tick. A
// problem is one of the planner's that the run ends with.
func (l *loop) solve(ctx context.Context, number int) (request *Request, problem, err error) {
	if l.request == nil {
		return nil, nil, &NoPlannerError{l.context}
	}
	solved, err := l.received()
	if err != nil || solved.Planner == nil {
		return solved, nil, err
	}
	ask, err := l.ask(ctx, number)
	if err != nil {
		return nil, nil, err
	}
	solution, err := consult(ctx, solved.Planner, ask)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, err
	case err != nil:
		return solved, &plannerError{err}, nil
	}
	solved.Calls, solved.Output, solved.HasOutput = solution.Calls, solution.Output, solution.Output != nil
	return solved, nil, nil
}

// received is the run's request for one tick. JSON is made of what it holds once,
// not at every tick anew.
func (l *loop) received() (*Request, error) {
	if !l.made {
		made, err := l.request.received()
		if err != nil {
			return nil, err
		}
		l.request, l.made = made, true
	}
	request := *l.request
	return &request, nil
}

// consult asks a planner. A panic of one in Go is its own fault, and nobody
// else's, as is a solution that is not JSON.
func consult(ctx context.Context, p Planner, ask Ask) (solution *Solution, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the planner broke down: %v", panicked)
		}
	}()
	solution, err = p.Plan(ctx, ask)
	switch {
	case err != nil:
		err, wrong := receivedError(err)
		return nil, cmp.Or(wrong, err)
	case solution == nil:
		return nil, errors.New("the planner gave no solution")
	}
	return solution.received()
}

// plannerError is a planner that broke down, and is not asked again.
type plannerError struct{ err error }

func (e *plannerError) Error() string { return mendText(e.err.Error()) }
func (e *plannerError) Unwrap() error { return e.err }

func (l *loop) event(number int, start int64, plan *Plan, request *Request) planEvent {
	event := planEvent{
		Tick: number, First: l.first, Plan: request.Name, Start: start, Calls: len(plan.Calls),
		Planner: request.Planner != nil, Mode: request.Mode, Approve: l.policy,
	}
	if request.Schema != nil {
		event.Schema = encode(request.Schema)
	}
	if request.Tools != nil {
		event.Tools = encode(request.Tools)
	}
	if request.HasOutput {
		event.Output = encode(request.Output)
	}
	return event
}

func planOf(request *Request) store.Message {
	calls := make([]any, len(request.Calls))
	for i, src := range request.Calls {
		calls[i] = src.Call
	}
	return store.Message{Type: store.TypePlan, Data: calls, HasData: true, Mode: request.Mode}
}

// drain waits until nothing is left of a tick and of those behind it that left
// counts, for as long as the runner allows, and then cuts it off. Until then each
// outcome is recorded as it comes.
func (l *loop) drain(ctx context.Context, last *tick, left func(*tick) int) error {
	ticks := l.behind
	if last != nil {
		ticks = append(slices.Clone(ticks), last)
	}
	limit := l.runner.Drain
	if limit == 0 {
		limit = DefaultDrain
	}
	deadline := time.Now().Add(limit)
	for _, t := range ticks {
		if err := t.collect(ctx, left, time.Until(deadline)); err != nil {
			return err
		}
	}
	return l.stopAll(ctx, ticks, left)
}

// stopAll tells what is left to stop, and records together what ends within the
// grace: it ends at once, and chance is not to decide in which order.
func (l *loop) stopAll(ctx context.Context, ticks []*tick, left func(*tick) int) error {
	l.stop()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	n, ended := 0, map[*tick][]*result{}
	for _, t := range ticks {
		n += left(t)
	}
	for ; n > 0; n-- {
		res := l.next(ctx, timer.C)
		if res == nil {
			break
		}
		ended[res.tick] = append(ended[res.tick], res)
	}
	for _, t := range ticks {
		results := ended[t]
		slices.SortFunc(results, func(a, b *result) int { return a.index - b.index })
		if err := t.record(ctx, func() error { return t.receive(ctx, results) }); err != nil {
			return err
		}
		if err := t.cutOffAll(ctx, left); err != nil {
			return err
		}
	}
	return nil
}

// abandon waits for workers that were told to stop, so that none outlives the
// run.
func (l *loop) abandon() {
	ended := make(chan struct{})
	go func() {
		l.workers.Wait()
		close(ended)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}
