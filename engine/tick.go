package engine

import (
	"container/heap"
	"context"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// tick is one round of the execution loop while it runs. The goroutine with the loop's lock owns
// it: it alone decides which calls are ready, and appends to the log; each worker owns one call.
//
// A tick proceeds in steps. A step takes the results that have come, makes messages of them, finds
// the calls that they unblock, and commits all of it, the starts of the next calls included, in one
// append. Only then do those calls run, except a single call without visible effects: the step goes
// on with its result. The starts of calls without visible effects are not recorded, unless the
// calls turn out to take long. If another append comes in between, the step is undone and made
// again on the log as it is then. Where several calls are under way the next step is made while one
// is being written; see [pendingCommit].
type tick struct {
	loop    *loop
	runner  *Runner
	context string
	plan    *plan.Plan
	event   journal.PlanEvent
	view    *store.View
	begun   bool  // the plan is in the log
	over    bool  // it has ended, and the planner is asked again
	problem error // why its planner gave no valid plan

	repeated bool // the planner repeated the solution that had just been refused

	calls      []callState
	readyQueue callQueue // calls that can run as soon as there is a slot
	// Fire-and-forget calls among these, which take no slot from others.
	looseQueue callQueue
	parked     map[*plan.Registered][]int // calls among these whose activity is at its limit
	// Calls that wait for paths that no call of the plan writes.
	waiting   waitIndex
	heldCalls map[int]bool // calls that are held for a person
	// Calls whose delegates wait, by the delegates' contexts.
	waitingParents map[string]int
	// Of the tick in the log of the recorded run, once they were asked for; else nil.
	recordedWriters writers
	// Of the tick's messages, if the reads of calls depend on them; else nil.
	writers        writers
	busy           map[*plan.Registered]int
	running        int               // workers that the tick waits for
	detached       int               // workers of fire-and-forget calls
	backingOff     int               // calls that pause before a retry
	retryQueue     callQueue         // calls that pause before a retry, the first due first
	stopping       bool              // the run is to end early
	polling        bool              // the goroutine of the loop polls the log
	recordedStarts []start           // starts of a recorded run, to be answered one by one
	ended          *journal.RunEvent // its end, once that is staged; nil again if the step is undone
	stale          []string          // see [journal.Outcome.Stale]
	givenResults   []*result         // results that a person gives, see [Resume.Result]

	journalled int64 // the journal's position up to which decisions were read

	made                   // by the step
	steps   int            // how many there were
	pending *pendingCommit // the step before, while it is being written
	spare   made           // room for another step's
	text    []byte         // to write records to, again and again
}

// made is the content of a step, to be committed.
type made struct {
	entries  []store.Entry
	places   []int            // by entry, the number of messages before it
	observed []journal.Record // records in the entries, for observers
	resumes  bool             // an entry says that the run is under way again
	starts   []start          // to be launched then
	retries  []*retryState    // to be retried after that
	code     []*store.Code    // scripts of started calls that the log may lack
	mark     undo             // state before the step
}

// undo is the state before a step.
type undo struct {
	calls   []savedCall
	entries int
	noted   int
}

// callState is what changes of a call.
type callState struct {
	record     journal.Record
	waits      int  // edges into it that still hold it
	started    bool // calls that wait for its reads have been unblocked
	settled    bool // calls that wait for it to settle have been unblocked
	reported   bool // its failure was reported when the run ended before
	written    []store.Path
	startedAt  time.Time
	working    bool           // a worker has it
	step       int            // in which it was started last
	retry      *retryState    // it has failed, and is retried
	retryDue   bool           // it is time for that
	before     journal.Status // before the run was resumed
	waitsSince int64          // the journal's position when its delegate began to wait
	saved      int            // the number of the step that has saved it
}

// due reports whether a call can run: it has not begun, a decision that it needs has been made, and
// no call that it waits for is left.
func (c *callState) due() bool {
	return c.waits == 0 && (c.record.Status == journal.Blocked || c.record.Status == journal.Ready)
}

// start is a call that is about to run.
type start struct {
	index int
	// The step that made it; distinguishes it from the call's other starts, undone ones included.
	step       int
	activity   *plan.Registered // the current version
	doer       string           // its name
	invocation plan.Invocation
	// Runs the call while the log lacks its start; nil where that must be recorded first.
	speculative plan.Speculative
	child       *childRun // run of a delegate
	slot        slot      // of any other
}

// retryState is a call that is tried again after a while.
type retryState struct {
	start
	after time.Duration
	due   time.Duration // since its run was opened
	timer *time.Timer   // nil before its failure is recorded
}

// queued is its turn among those that are tried again, which come as they are due.
func (a *retryState) queued() queuedCall {
	return queuedCall{journal.Position{N: int64(a.due)}, a.index}
}

// savedCall is the state of a call before the step changed it.
type savedCall struct {
	index  int
	before callState
}

// callQueue is a heap: calls come in the order of the plan, or, when they are
// replayed, in that in which they began.
type callQueue []queuedCall

// queuedCall is a call that may have its turn.
type queuedCall struct {
	rank  journal.Position
	index int
}

func (p callQueue) Len() int { return len(p) }

func (p callQueue) Less(i, j int) bool {
	return p[i].rank.Before(p[j].rank) || p[i].rank == p[j].rank && p[i].index < p[j].index
}

func (p callQueue) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

func (p *callQueue) Push(x any) { *p = append(*p, x.(queuedCall)) }

func (p *callQueue) Pop() any {
	old := *p
	x := old[len(old)-1]
	*p = old[:len(old)-1]
	return x
}

func newTick(l *loop, compiled *plan.Plan, event journal.PlanEvent) *tick {
	t := &tick{
		loop: l, runner: l.runner, context: l.context, plan: compiled, view: l.view, event: event,
		calls:          make([]callState, len(compiled.Calls)),
		parked:         map[*plan.Registered][]int{},
		waiting:        waitIndex{},
		heldCalls:      map[int]bool{},
		waitingParents: map[string]int{},
		busy:           map[*plan.Registered]int{},

		journalled: l.n,
	}
	t.preallocate()
	for i := range t.calls {
		t.calls[i] = callState{record: t.newRecord(i), waits: len(compiled.Graph.Into[i])}
	}
	if l.runner.script.Recorded() {
		t.takeRecorded()
	}
	return t
}

// maxPreallocated bounds the calls for which a tick preallocates.
const maxPreallocated = 16

// preallocate allocates the space for the steps of a short plan at once.
func (t *tick) preallocate() {
	n := min(len(t.calls), maxPreallocated)
	t.view.Grow(n + 1)
	t.entries, t.places = make([]store.Entry, 0, 2*n+2), make([]int, 0, 2*n+2)
}

func (t *tick) newRecord(i int) journal.Record {
	c := t.plan.Calls[i]
	return journal.Record{
		Call: journal.CallID(t.event.Tick, c.Position), Tick: t.event.Tick, Position: c.Position,
		Tool: c.Tool, Instance: c.Instance, Status: journal.Blocked, Unstored: c.FireAndForget(),
	}
}

// run carries the tick to its end, or as far as it gets. There is no outcome
// where the planner is to be asked again.
func (t *tick) run(ctx context.Context) (*journal.Outcome, error) {
	kept := context.WithoutCancel(ctx) // results are recorded even if the run is to end
	if t.problem != nil {
		if err := t.endTick(kept); err != nil {
			return nil, err
		}
		return t.outcome(kept)
	}
	if held, err := t.isHeldWhole(kept); held || err != nil {
		return t.recordLazy(kept, err)
	}
	t.restoreQueues()
	t.loop.current = t
	looking := time.NewTicker(pollInterval)
	defer looking.Stop()
	for {
		jobs, err := t.step(kept, ctx, t.givenResults, false)
		if err != nil {
			return nil, err
		}
		t.givenResults = nil
		t.loop.launch(jobs)
		for t.isActive() {
			if err := t.await(ctx, kept, looking.C); err != nil {
				return nil, err
			}
			if ctx.Err() != nil && t.ended == nil {
				return t.interrupted(ctx)
			}
		}
		if t.ended != nil {
			return t.outcome(kept)
		}
		if t.needsPoll() {
			if err := t.poll(kept); err != nil {
				return nil, err
			}
		}
		if t.hasQueued() {
			if ctx.Err() != nil {
				return t.interrupted(ctx)
			}
			continue
		}
		if err := t.endTick(kept); err != nil {
			return nil, err
		}
		if t.ended != nil {
			return t.outcome(kept)
		}
	}
}

// isActive reports whether results or decisions are to come before the tick as a whole can end.
func (t *tick) isActive() bool {
	return t.ended == nil && (t.running+t.backingOff > 0 || t.detached > 0 && t.hasQueued() || t.isInteractive())
}

// await waits for something to happen, and goes on from there.
func (t *tick) await(ctx, kept context.Context, looking <-chan time.Time) error {
	t.deliverRecorded(ctx)
	if t.polling = t.needsPoll(); !t.polling {
		looking = nil
	}
	res, err := t.loop.wait(ctx, looking)
	var jobs []task
	switch {
	case err != nil:
		return err
	case res != nil:
		jobs, err = t.stepWith(kept, ctx, res, true)
	case ctx.Err() == nil && t.isActive() && t.needsPoll():
		if err := t.poll(kept); err != nil {
			return err
		}
		jobs, err = t.step(kept, ctx, nil, false)
	}
	t.loop.launch(jobs)
	return err
}

// isHeldWhole reports whether the plan waits for its release.
func (t *tick) isHeldWhole(ctx context.Context) (bool, error) {
	// Else there is nothing to approve.
	lazy := t.event.Mode == plan.ModeLazy && (len(t.calls) > 0 || t.plan.Output == nil)
	if !lazy || !t.begun {
		return lazy, nil
	}
	last, err := journal.In(t.runner.Log, t.context).LastRun(ctx)
	return last.Held, err
}

// recordLazy ends a run whose plan is lazy as soon as the plan is recorded.
func (t *tick) recordLazy(ctx context.Context, err error) (*journal.Outcome, error) {
	if err == nil {
		err = t.commitStep(ctx, func() error {
			t.appendEntry(store.Entry{Event: journal.EventRun, Data: string(store.EncodeJSON(journal.RunEvent{Tick: t.event.Tick, Status: journal.RunWaiting, Detached: t.hasDetached()}))})
			return nil
		})
	}
	if err == nil && t.hasDetached() {
		err = t.loop.drain(ctx, nil, (*tick).detachedCalls)
	}
	return &journal.Outcome{Context: t.context, Status: journal.RunWaiting, Lazy: t.plan, Calls: t.all()}, err
}

// pollInterval is the time between polls of the log for foreign messages, while calls wait for them
// and others run.
const pollInterval = 100 * time.Millisecond

// needsPoll reports whether a call waits for others: for messages, decisions, or either in a
// delegate's context.
func (t *tick) needsPoll() bool { return len(t.waiting)+len(t.heldCalls)+len(t.waitingParents) > 0 }

// restoreQueues unblocks the dependants of restored calls, and finds the calls that can run. The
// dependants of a settled call stay blocked as long as a call that it waits for is to run again.
func (t *tick) restoreQueues() {
	for i := range t.calls {
		switch c := &t.calls[i]; {
		case c.record.Status.Settled():
			if c.waits == 0 {
				t.unblock(i, true)
			}
		case c.record.At != 0: // it has read
			t.unblock(i, false)
		}
	}
	t.rebuildQueues()
}

// rebuildQueues finds what can run from the states of the calls.
func (t *tick) rebuildQueues() {
	t.readyQueue, t.looseQueue, t.parked, t.waiting, t.heldCalls = nil, nil, map[*plan.Registered][]int{}, waitIndex{}, map[int]bool{}
	t.waitingParents, t.retryQueue = map[string]int{}, nil
	for i := range t.calls {
		c := &t.calls[i]
		if c.retry != nil && !c.retryDue && c.retry.timer != nil {
			heap.Push(&t.retryQueue, c.retry.queued())
		}
		switch {
		case c.record.Status == journal.Waiting && c.record.Child != "":
			t.waitingParents[c.record.Child] = i
		case c.record.Status == journal.Waiting:
			t.waiting.add(i, c.record.WaitingOn)
		case c.record.Status == journal.Held:
			t.heldCalls[i] = true
		case c.due() || c.retryDue:
			t.queue(i)
		}
	}
}

// queue lets a call have its turn.
func (t *tick) queue(i int) {
	queue := &t.readyQueue
	if t.plan.Calls[i].FireAndForget() {
		queue = &t.looseQueue
	}
	heap.Push(queue, queuedCall{t.recordedSpan(i).Began, i})
}

// hasQueued reports whether queued calls are left.
func (t *tick) hasQueued() bool {
	for _, parked := range t.parked {
		if len(parked) > 0 {
			return true
		}
	}
	return len(t.readyQueue)+len(t.looseQueue) > 0
}

// unblock lets go of the calls that wait for call i: those that wait until it
// has read, and, once it has settled, all.
func (t *tick) unblock(i int, settled bool) {
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
			defer t.unblock(e.To, true)
		}
	}
	c.started = true
	c.settled = c.settled || settled
}

// poll reads foreign messages and decisions, and requeues the calls that wait for them.
func (t *tick) poll(ctx context.Context) error {
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
	if err := t.readDecisions(ctx); err != nil {
		return err
	}
	return t.requeueParents(ctx)
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
