package engine

import (
	"container/heap"
	"context"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// tick is one round of the execution loop while it runs. It belongs to whoever
// has the loop's turn, who alone decides what is ready and appends to the log;
// each worker owns one call.
//
// What happens is done in steps. A step takes the results that have come,
// makes messages of them, finds what they unblock, and commits all of it, the
// starts of the next calls too, in one append. Only then do those calls run, but
// for one by itself of which nothing can be seen: the step goes on with its result. Of those
// that nobody can see the starts are not recorded, unless they turn out to take long.
// If somebody else has appended in between, the step is undone and done again
// on what the log holds now. Where several calls are under way the next step is made
// while one is being written; see [flight].
type tick struct {
	loop    *loop
	runner  *Runner
	context string
	plan    *plan.Plan
	event   journal.PlanEvent
	view    *store.View
	begun   bool  // the plan is in the log
	over    bool  // it has ended, and the planner is asked again
	problem error // why its planner gave no plan that can be run

	repeated bool // the planner gave the solution that had just been refused

	calls      []callState
	runnable   positions                  // calls that wait for nothing but their turn
	loose      positions                  // the same of fire-and-forget calls, which take no turn from others
	parked     map[*plan.Registered][]int // and for their activity, which runs as often as it may
	waiting    waitIndex                  // calls that wait for what nothing in the plan writes
	holding    map[int]bool               // calls that are held for a person
	inside     map[string]int             // calls whose delegates wait, by the delegates' contexts
	recorded   authors                    // of the tick in the log of the recorded run, once they were asked for; else nil
	authors    authors                    // of what there is of the tick, if what calls read depends on that; else nil
	busy       map[*plan.Registered]int
	running    int               // workers that the tick waits for
	detached   int               // workers of fire-and-forget calls
	resting    int               // calls that wait to be tried again
	due        positions         // of them, the first for which it is time first
	stopping   bool              // the run is to end before it has
	looking    bool              // the one that runs the loop looks at the log now and then
	unanswered []start           // that are replayed, one after the other
	ending     *journal.RunEvent // how it ended, once that is in the log
	outdated   []string          // see [journal.Outcome.Stale]
	brought    []*result         // what a person knows that calls came to, see [Resume.Result]

	journalled int64 // the journal's position up to which it was looked through for decisions

	made           // by the step
	steps  int     // how many there were
	flight *flight // the step before, while it is being written
	spare  made    // room for another step's
	text   []byte  // to write records to, again and again
}

// made is what a step makes, to be committed.
type made struct {
	entries []store.Entry
	places  []int            // how many of its messages each of them comes after
	noted   []journal.Record // what the entries say of calls, if somebody is to know
	goes    bool             // one of them is that the run is under way again
	starts  []start          // to be launched then
	rests   []*again         // to be tried again after that
	code    []*store.Code    // what has been started runs, until that is in the log
	saved   undo             // what the step began from
}

// undo is what a step began from.
type undo struct {
	calls   []savedCall
	entries int
	noted   int
}

// callState is what changes of a call.
type callState struct {
	record   journal.Record
	waits    int  // edges into it that still hold it
	started  bool // whoever waits for it to read has been released
	settled  bool // whoever waits for it to settle has been released
	reported bool // its failure became an error message when the run ended before
	wrote    []store.Path
	began    time.Time
	working  bool           // a worker has it
	step     int            // in which it was started last
	again    *again         // it has failed, and is tried again
	rested   bool           // it is time for that
	was      journal.Status // before the run was resumed
	seen     int64          // the journal's position when its delegate began to wait
	saved    int            // the number of the step that has saved it
}

// due tells whether a call has its turn: it has not begun, a person has decided
// where that was to be waited for, and no other call holds it back.
func (c *callState) due() bool {
	return c.waits == 0 && (c.record.Status == journal.Blocked || c.record.Status == journal.Ready)
}

// start is a call that is about to run.
type start struct {
	index      int
	step       int              // in which it was made: tells it from the call's other starts, also from those that were undone
	activity   *plan.Registered // as it is now
	doer       string           // its name
	invocation plan.Invocation
	ahead      plan.Speculative // does it, while the log does not have that it begins; nil where it has to
	room       *room            // of a delegate
	slot       slot             // of any other
}

// again is a call that is tried again after a while.
type again struct {
	start
	after time.Duration
	due   time.Duration // after its run was opened
	timer *time.Timer   // nil before its failure is recorded
}

// turn is its turn among those that are tried again, which come as they are due.
func (a *again) turn() turn { return turn{journal.Position{N: int64(a.due)}, a.index} }

// savedCall is what a call was before the step changed it.
type savedCall struct {
	index int
	was   callState
}

// positions is a heap: calls come in the order of the plan, or, when they are
// replayed, in that in which they began.
type positions []turn

// turn is a call that may have its turn.
type turn struct {
	rank  journal.Position
	index int
}

func (p positions) Len() int { return len(p) }

func (p positions) Less(i, j int) bool {
	return p[i].rank.Before(p[j].rank) || p[i].rank == p[j].rank && p[i].index < p[j].index
}

func (p positions) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

func (p *positions) Push(x any) { *p = append(*p, x.(turn)) }

func (p *positions) Pop() any {
	old := *p
	x := old[len(old)-1]
	*p = old[:len(old)-1]
	return x
}

func newTick(l *loop, compiled *plan.Plan, event journal.PlanEvent) *tick {
	t := &tick{
		loop: l, runner: l.runner, context: l.context, plan: compiled, view: l.view, event: event,
		calls:   make([]callState, len(compiled.Calls)),
		parked:  map[*plan.Registered][]int{},
		waiting: waitIndex{},
		holding: map[int]bool{},
		inside:  map[string]int{},
		busy:    map[*plan.Registered]int{},

		journalled: l.n,
	}
	t.makeRoom()
	for i := range t.calls {
		t.calls[i] = callState{record: t.fresh(i), waits: len(compiled.Graph.Into[i])}
	}
	if l.runner.script.Recorded() {
		t.takeRecorded()
	}
	return t
}

// mostRoom bounds what a tick makes room for before it is needed.
const mostRoom = 16

// makeRoom makes room for what the steps of a short plan leave, once.
func (t *tick) makeRoom() {
	n := min(len(t.calls), mostRoom)
	t.view.Grow(n + 1)
	t.entries, t.places = make([]store.Entry, 0, 2*n+2), make([]int, 0, 2*n+2)
}

func (t *tick) fresh(i int) journal.Record {
	c := t.plan.Calls[i]
	return journal.Record{
		Call: journal.CallID(t.event.Tick, c.Position), Tick: t.event.Tick, Position: c.Position,
		Tool: c.Tool, Instance: c.Instance, Status: journal.Blocked, Unstored: c.FireAndForget(),
	}
}

// run carries the tick to its end, or as far as it gets. There is no outcome
// where the planner is to be asked again.
func (t *tick) run(ctx context.Context) (*journal.Outcome, error) {
	kept := context.WithoutCancel(ctx) // what has happened is recorded, whatever becomes of the run
	if t.problem != nil {
		if err := t.finish(kept); err != nil {
			return nil, err
		}
		return t.outcome(kept)
	}
	if held, err := t.heldWhole(kept); held || err != nil {
		return t.recordLazy(kept, err)
	}
	t.seed()
	t.loop.current = t
	looking := time.NewTicker(lookEvery)
	defer looking.Stop()
	for {
		jobs, err := t.step(kept, ctx, t.brought, false)
		if err != nil {
			return nil, err
		}
		t.brought = nil
		t.loop.launch(jobs)
		for t.active() {
			if err := t.await(ctx, kept, looking.C); err != nil {
				return nil, err
			}
			if ctx.Err() != nil && t.ending == nil {
				return t.interrupted(ctx)
			}
		}
		if t.ending != nil {
			return t.outcome(kept)
		}
		if t.looks() {
			if err := t.takeIn(kept); err != nil {
				return nil, err
			}
		}
		if t.pending() {
			if ctx.Err() != nil {
				return t.interrupted(ctx)
			}
			continue
		}
		if err := t.finish(kept); err != nil {
			return nil, err
		}
		if t.ending != nil {
			return t.outcome(kept)
		}
	}
}

// active tells whether results are to come, or decisions, before the tick has to
// be looked at as a whole.
func (t *tick) active() bool {
	return t.ending == nil && (t.running+t.resting > 0 || t.detached > 0 && t.pending() || t.attended())
}

// await waits for something to happen, and goes on from there.
func (t *tick) await(ctx, kept context.Context, looking <-chan time.Time) error {
	t.deliverRecorded(ctx)
	if t.looking = t.looks(); !t.looking {
		looking = nil
	}
	res, err := t.loop.wait(ctx, looking)
	var jobs []job
	switch {
	case err != nil:
		return err
	case res != nil:
		jobs, err = t.take(kept, ctx, res, true)
	case ctx.Err() == nil && t.active() && t.looks():
		if err := t.takeIn(kept); err != nil {
			return err
		}
		jobs, err = t.step(kept, ctx, nil, false)
	}
	t.loop.launch(jobs)
	return err
}

// heldWhole tells whether the plan waits until a person releases it.
func (t *tick) heldWhole(ctx context.Context) (bool, error) {
	lazy := t.event.Mode == plan.ModeLazy && (len(t.calls) > 0 || t.plan.Output == nil) // else there is nothing to approve
	if !lazy || !t.begun {
		return lazy, nil
	}
	last, err := journal.In(t.runner.Log, t.context).LastRun(ctx)
	return last.Held, err
}

// recordLazy ends a run whose plan is lazy as soon as the plan is recorded.
func (t *tick) recordLazy(ctx context.Context, err error) (*journal.Outcome, error) {
	if err == nil {
		err = t.record(ctx, func() error {
			t.journal(store.Entry{Event: journal.EventRun, Data: string(store.EncodeJSON(journal.RunEvent{Tick: t.event.Tick, Status: journal.RunWaiting, Detached: t.leavesBehind()}))})
			return nil
		})
	}
	if err == nil && t.leavesBehind() {
		err = t.loop.drain(ctx, nil, (*tick).loosely)
	}
	return &journal.Outcome{Context: t.context, Status: journal.RunWaiting, Lazy: t.plan, Calls: t.all()}, err
}

// lookEvery is how often the log is looked at for what others append, while
// calls wait for it and others run.
const lookEvery = 100 * time.Millisecond

// looks tells whether something waits that others may bring about: messages,
// decisions, or either in a delegate's context.
func (t *tick) looks() bool { return len(t.waiting)+len(t.holding)+len(t.inside) > 0 }

// seed releases what restored calls hold, and finds what can run. What has settled though
// what it waits for is to run again holds what waits for it until that has settled too.
func (t *tick) seed() {
	for i := range t.calls {
		switch c := &t.calls[i]; {
		case c.record.Status.Settled():
			if c.waits == 0 {
				t.release(i, true)
			}
		case c.record.At != 0: // it has read
			t.release(i, false)
		}
	}
	t.rebuild()
}

// rebuild finds what can run from the states of the calls.
func (t *tick) rebuild() {
	t.runnable, t.loose, t.parked, t.waiting, t.holding = nil, nil, map[*plan.Registered][]int{}, waitIndex{}, map[int]bool{}
	t.inside, t.due = map[string]int{}, nil
	for i := range t.calls {
		c := &t.calls[i]
		if c.again != nil && !c.rested && c.again.timer != nil {
			heap.Push(&t.due, c.again.turn())
		}
		switch {
		case c.record.Status == journal.Waiting && c.record.Child != "":
			t.inside[c.record.Child] = i
		case c.record.Status == journal.Waiting:
			t.waiting.add(i, c.record.WaitingOn)
		case c.record.Status == journal.Held:
			t.holding[i] = true
		case c.due() || c.rested:
			t.queue(i)
		}
	}
}

// queue lets a call have its turn.
func (t *tick) queue(i int) {
	queue := &t.runnable
	if t.plan.Calls[i].FireAndForget() {
		queue = &t.loose
	}
	heap.Push(queue, turn{t.recordedSpan(i).Began, i})
}

// pending tells whether calls have their turn to come.
func (t *tick) pending() bool {
	for _, parked := range t.parked {
		if len(parked) > 0 {
			return true
		}
	}
	return len(t.runnable)+len(t.loose) > 0
}

// release lets go of the calls that wait for call i: those that wait until it
// has read, and, once it has settled, all.
func (t *tick) release(i int, settled bool) {
	c := t.change(i)
	for _, e := range t.plan.Graph.OutOf[i] {
		free := e.Kind == plan.ReadEdge && !c.started || e.Kind != plan.ReadEdge && settled && !c.settled
		if !free || t.overtook(e) {
			continue
		}
		next := t.change(e.To)
		if next.waits--; next.due() {
			t.queue(e.To)
		} else if next.waits == 0 && next.record.Status.Settled() {
			defer t.release(e.To, true)
		}
	}
	c.started = true
	c.settled = c.settled || settled
}

// takeIn reads what others have appended, messages and decisions, and wakes the
// calls that wait for it.
func (t *tick) takeIn(ctx context.Context) error {
	news, err := t.view.Refresh(ctx)
	if err != nil {
		return err
	}
	for _, m := range news {
		op, ok := m.Op()
		if !ok {
			continue
		}
		for _, path := range op.Touches() {
			for _, i := range t.waiting.take(path) {
				t.calls[i].record.Status = journal.Blocked
				t.queue(i)
			}
		}
	}
	if err := t.takeDecisions(ctx); err != nil {
		return err
	}
	return t.wakeInside(ctx)
}

// all gives the calls as they stand.
func (t *tick) all() []journal.Record {
	all := make([]journal.Record, len(t.calls))
	for i := range t.calls {
		all[i] = t.calls[i].record
		all[i].Context = t.context
	}
	return all
}
