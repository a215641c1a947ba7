package engine

import (
	"container/heap"
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"obelus/store"
)

// tick is one round of the execution loop while it runs. One goroutine owns
// it: it alone decides what is ready and appends to the log, and each worker
// owns one call.
//
// What happens is done in steps. A step takes the results that have come,
// makes messages of them, finds what they unblock, and commits all of it, the
// starts of the next calls too, in one append. Only then do those calls run.
// If somebody else has appended in between, the step is undone and done again
// on what the log holds now.
type tick struct {
	runner  *Runner
	context string
	plan    *Plan
	event   planEvent
	view    *store.View
	begun   bool // the plan is in the log

	calls    []callState
	runnable positions        // calls that wait for nothing but their turn
	loose    positions        // the same of fire-and-forget calls, which take no turn from others
	parked   map[string][]int // and for their activity, which runs as often as it may
	waiting  waitIndex        // calls that wait for what nothing in the plan writes
	busy     map[string]int   // how often each activity runs
	running  int              // workers that the tick waits for
	detached int              // workers of fire-and-forget calls
	results  chan result
	workers  sync.WaitGroup

	entries []store.Entry // of the step
	noted   []Record      // of the step: what the entries say of calls
	starts  []start       // of the step
	saved   undo          // of the step
}

// callState is what changes of a call.
type callState struct {
	record   Record
	waits    int  // edges into it that still hold it
	started  bool // whoever waits for it to read has been released
	settled  bool // whoever waits for it to settle has been released
	reported bool // its failure became an error message when the run ended before
	wrote    []store.Path
	began    time.Time
}

// start is a call that is about to run.
type start struct {
	index      int
	invocation Invocation
}

// undo is what a step began from.
type undo struct {
	calls    map[int]callState
	entries  int
	noted    int
	busy     map[string]int
	running  int
	detached int
}

// positions is a heap: calls come in the order of the plan.
type positions []int

func (p positions) Len() int           { return len(p) }
func (p positions) Less(i, j int) bool { return p[i] < p[j] }
func (p positions) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *positions) Push(x any)        { *p = append(*p, x.(int)) }
func (p *positions) Pop() any {
	old := *p
	x := old[len(old)-1]
	*p = old[:len(old)-1]
	return x
}

func newTick(r *Runner, name string, plan *Plan, view *store.View, event planEvent) *tick {
	t := &tick{
		runner: r, context: name, plan: plan, view: view, event: event,
		calls:   make([]callState, len(plan.Calls)),
		parked:  map[string][]int{},
		waiting: waitIndex{},
		busy:    map[string]int{},
		results: make(chan result, len(plan.Calls)),
	}
	for i := range t.calls {
		t.calls[i] = callState{record: t.fresh(i), waits: len(plan.graph.into[i])}
	}
	return t
}

func (t *tick) fresh(i int) Record {
	c := t.plan.Calls[i]
	return Record{
		Call: callID(t.event.Tick, c.Position), Tick: t.event.Tick, Position: c.Position,
		Tool: c.Tool, Instance: c.Instance, Status: Blocked, Unstored: c.fireAndForget(),
	}
}

// restore takes over what the journal has of a call.
func (t *tick) restore(record Record) {
	i := record.Position - 1
	if i < 0 || i >= len(t.calls) {
		return
	}
	c := &t.calls[i]
	record.Context = ""
	switch {
	case record.Status.Settled() || record.Status == InDoubt:
		c.record = record
		for _, text := range record.Writes {
			if path, err := store.ParsePath(text); err == nil {
				c.wrote = append(c.wrote, path)
			}
		}
	case record.Status == Running && record.Unstored:
		c.record = record
		c.record.Status, c.record.Error = Failed, map[string]any{"message": "it was cut off when the process ended", "code": "cut-off"}
		t.note(i)
	case (record.Status == Running || record.Status == Cancelled) && t.plan.Calls[i].activity != nil && t.plan.Calls[i].activity.NotIdempotent:
		c.record = record
		c.record.Status = InDoubt
		t.note(i)
	default:
		c.record.Attempts = record.Attempts
	}
}

// run carries the tick to its end, or as far as it gets.
func (t *tick) run(ctx context.Context) (*Outcome, error) {
	working, stop := context.WithCancel(context.WithoutCancel(ctx)) // what runs may end after the run is told to
	defer func() {
		stop()
		t.abandon()
	}()
	t.seed()
	kept := context.WithoutCancel(ctx) // what has happened is recorded, whatever becomes of the run
	for {
		if err := t.step(kept, working, nil); err != nil {
			return nil, err
		}
		for t.running > 0 || t.detached > 0 && t.held() {
			select {
			case res := <-t.results:
				results := t.drainResults(res)
				if ctx.Err() != nil {
					return t.interrupted(stop, results...)
				}
				if err := t.step(kept, working, results); err != nil {
					return nil, err
				}
			case <-t.look():
				if err := t.takeIn(kept); err != nil {
					return nil, err
				}
				if err := t.step(kept, working, nil); err != nil {
					return nil, err
				}
			case <-ctx.Done():
				return t.interrupted(stop)
			}
		}
		if len(t.waiting) > 0 {
			if err := t.takeIn(kept); err != nil {
				return nil, err
			}
		}
		if t.held() {
			if ctx.Err() != nil {
				return t.interrupted(stop)
			}
			continue
		}
		if outcome, err := t.finish(ctx, stop); outcome != nil || err != nil {
			return outcome, err
		}
	}
}

// lookEvery is how often the log is looked at for what others append, while
// calls wait for it and others run.
const lookEvery = 100 * time.Millisecond

// look gives the time to look at the log, if something waits.
func (t *tick) look() <-chan time.Time {
	if len(t.waiting) == 0 {
		return nil
	}
	return time.After(lookEvery)
}

// seed releases what restored calls hold, and finds what can run.
func (t *tick) seed() {
	for i := range t.calls {
		if t.calls[i].record.Status.Settled() {
			t.release(i, true)
		}
	}
	t.rebuild()
}

// rebuild finds what can run from the states of the calls.
func (t *tick) rebuild() {
	t.runnable, t.loose, t.parked, t.waiting = nil, nil, map[string][]int{}, waitIndex{}
	for i := range t.calls {
		c := &t.calls[i]
		switch {
		case c.record.Status == Waiting:
			t.waiting.add(i, c.record.WaitingOn)
		case c.waits == 0 && c.record.Status == Blocked:
			t.queue(i)
		}
	}
}

// queue lets a call have its turn.
func (t *tick) queue(i int) {
	if t.plan.Calls[i].fireAndForget() {
		heap.Push(&t.loose, i)
		return
	}
	heap.Push(&t.runnable, i)
}

// held tells whether calls have their turn to come.
func (t *tick) held() bool {
	for _, parked := range t.parked {
		if len(parked) > 0 {
			return true
		}
	}
	return len(t.runnable)+len(t.loose) > 0
}

// drainResults takes all results that have come, so that one append commits
// them together.
func (t *tick) drainResults(first result) []result {
	all := []result{first}
	for {
		select {
		case res := <-t.results:
			all = append(all, res)
		default:
			return all
		}
	}
}

// step is one turn of the tick; see there.
func (t *tick) step(ctx, working context.Context, results []result) error {
	err := t.record(ctx, func() error {
		if err := t.receive(ctx, results); err != nil {
			return err
		}
		return t.advance(ctx)
	})
	if err == nil {
		t.launch(working)
	}
	return err
}

// record does something and commits what it makes. If somebody else has
// appended in between, it is undone and done again.
func (t *tick) record(ctx context.Context, do func() error) error {
	for range maxConflicts {
		t.save()
		if err := do(); err != nil {
			return err
		}
		err := t.commit(ctx)
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || !t.begun {
			return err
		}
		t.undo()
		if err := t.takeIn(ctx); err != nil {
			return err
		}
	}
	return errors.New("context " + t.context + " is appended to by others all the time")
}

func (t *tick) save() {
	t.saved = undo{calls: map[int]callState{}, entries: len(t.entries), noted: len(t.noted), busy: maps.Clone(t.busy), running: t.running, detached: t.detached}
}

func (t *tick) undo() {
	for i, c := range t.saved.calls {
		t.calls[i] = c
	}
	t.busy, t.running, t.detached = t.saved.busy, t.saved.running, t.saved.detached
	t.entries, t.noted, t.starts = t.entries[:t.saved.entries], t.noted[:t.saved.noted], nil
	t.view.Drop()
	t.rebuild()
}

// change gives a call's state to be changed within the step.
func (t *tick) change(i int) *callState {
	if t.saved.calls != nil {
		if _, ok := t.saved.calls[i]; !ok {
			t.saved.calls[i] = t.calls[i]
		}
	}
	return &t.calls[i]
}

func (t *tick) journal(e store.Entry) { t.entries = append(t.entries, e) }

// note writes a call's record to the journal.
func (t *tick) note(i int) {
	r := &t.calls[i].record
	t.noted = append(t.noted, *r)
	t.journal(store.Entry{Call: r.Call, Event: string(r.Status), Data: encode(r)})
}

// commit appends what the step has made, and tells of it.
func (t *tick) commit(ctx context.Context) error {
	if len(t.entries) == 0 && len(t.view.Staged()) == 0 {
		return nil
	}
	b := store.Batch{Context: t.context, ExpectSeq: t.view.Committed(), Messages: t.view.Staged(), Journal: t.entries}
	if !t.begun {
		b.Create = &store.Origin{}
	}
	if _, err := t.runner.Log.Append(ctx, b); err != nil {
		return err
	}
	t.begun = true
	t.view.Commit()
	noted := t.noted
	t.entries, t.noted = nil, nil
	if t.runner.Observe == nil {
		return nil
	}
	for _, r := range noted {
		r.Context = t.context
		t.runner.Observe(r)
	}
	return nil
}

// release lets go of the calls that wait for call i: those that wait until it
// has read, and, once it has settled, all.
func (t *tick) release(i int, settled bool) {
	c := t.change(i)
	for _, e := range t.plan.graph.outOf[i] {
		free := e.kind == readEdge && !c.started || e.kind != readEdge && settled && !c.settled
		if !free {
			continue
		}
		next := t.change(e.to)
		if next.waits--; next.waits == 0 && next.record.Status == Blocked {
			t.queue(e.to)
		}
	}
	c.started = true
	c.settled = c.settled || settled
}

// takeIn reads what others have appended and wakes the calls that wait for it.
func (t *tick) takeIn(ctx context.Context) error {
	news, err := t.view.Refresh(ctx)
	if err != nil {
		return err
	}
	for _, m := range news {
		if tick, _, _ := strings.Cut(m.Call, "."); tick == strconv.Itoa(t.event.Tick) {
			return &BusyError{t.context} // nobody else writes what its calls write
		}
		op, ok := m.Op()
		if !ok {
			continue
		}
		for _, path := range op.Touches() {
			for _, i := range t.waiting.take(path) {
				t.calls[i].record.Status = Blocked
				t.queue(i)
			}
		}
	}
	return nil
}

// all gives the calls as they stand.
func (t *tick) all() []Record {
	all := make([]Record, len(t.calls))
	for i := range t.calls {
		all[i] = t.calls[i].record
		all[i].Context = t.context
	}
	return all
}
