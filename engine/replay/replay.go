package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/logerr"
	"obelus/engine/internal/script"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// Replayed is the result of a replay, compared with the log.
type Replayed struct {
	Context     string
	Calls       int // that were compared
	Differences []Difference
}

// Difference is one thing that came out otherwise.
type Difference struct {
	Call string `json:"call,omitempty"` // empty for a value, or the run's own end
	// "issued" (the call in the plan), "status", "writes", "output", or a path.
	What     string `json:"what"`
	Recorded any    `json:"recorded"`
	Replayed any    `json:"replayed"`
}

// Run replays the newest run of a context in memory, with every activity answered from the record,
// and compares the result with the log. A function that planned is asked again, by the request; a
// model is not: its recorded plans are run, as all plans are without a request. Foreign messages
// are injected where they were. Nothing outside is touched, and nothing is written. Its error is an
// [*engine.UnfinishedError] for a run that has not ended, and an [*engine.NoPlannerError] for one
// whose planner the request no longer has.
func Run(ctx context.Context, r *engine.Runner, name string, request *plan.Request) (*Replayed, error) {
	return run(ctx, r, name, request, false)
}

// Ask is [Run], except that a model that planned the run is asked again, of the request as it is
// given: what differs is where it plans otherwise now. This costs what asking it costs.
func Ask(ctx context.Context, r *engine.Runner, name string, request *plan.Request) (*Replayed, error) {
	return run(ctx, r, name, request, true)
}

func run(ctx context.Context, r *engine.Runner, name string, request *plan.Request, ask bool) (*Replayed, error) {
	last, err := journal.In(r.Log, name).LastRun(ctx)
	switch {
	case err != nil:
		return nil, err
	case last.Tick == 0:
		return nil, &journal.NoSuchCallError{Message: fmt.Sprintf("context %s has no run to replay", name)}
	case !last.Status.Finished():
		return nil, &engine.UnfinishedError{Context: name, Status: last.Status}
	}
	p := &recorded{
		log: &journal.Truncated{Reader: r.Log, Ends: map[string]journal.End{}}, twin: memory.New(), ask: ask,
		foreign: map[string]*foreign{}, records: map[string]map[string]journal.Record{}, spans: map[string]map[string]journal.Span{},
	}
	runner := *r
	if last.Event.ByModel && runner.Ticks == 0 {
		runner.Ticks = plan.DefaultTicks
	}
	outcome, err := runner.RunRecorded(ctx, name, request, p.twin, p, func(own *plan.Request) (*plan.Request, error) {
		return p.choose(ctx, name, last, own)
	})
	if err != nil {
		return nil, err
	}
	return p.compare(ctx, name, last, outcome)
}

// choose seeds the twin, and returns the request that is run in it: the plans as recorded, or the
// planner of the context's own request.
func (r *recorded) choose(ctx context.Context, name string, last journal.Run, own *plan.Request) (*plan.Request, error) {
	start, err := r.seed(ctx, name, last)
	if err != nil {
		return nil, err
	}
	switch {
	case start.Request.Planner == nil || own == nil || !r.ask && own.IsModelPlanned():
		own = start.Request
	case own.Planner == nil:
		return nil, &engine.NoPlannerError{Context: name}
	}
	r.recordedPlans = own == start.Request
	run := *own
	run.Name, run.Mode, run.Tools, run.Schema = start.Request.Name, "", start.Request.Tools, start.Request.Schema
	run.Context = nil // it is there already
	return &run, nil
}

// recorded is the script of a run that is replayed: it answers calls from their records, one
// after the other.
type recorded struct {
	log  *journal.Truncated
	twin *memory.Log // where the run runs again

	ask           bool // a model that planned is asked again
	recordedPlans bool // planners are not asked again: their solutions are in the log
	errors        bool // the log may have errors that come out twice: of a refused plan

	foreign map[string]*foreign // by context

	records map[string]map[string]journal.Record // by context and call
	spans   map[string]map[string]journal.Span
	err     error // the first of the log where none could be returned; the next injection returns it
}

// note keeps an error of the log where none can be returned.
func (r *recorded) note(err error) { r.err = cmp.Or(r.err, err) }

var _ script.Script = (*recorded)(nil)

// Log implements [script.Script].
func (r *recorded) Log() store.Reader { return r.log }

// seed brings the twin to where the run began, and gives the run as it is
// recorded.
func (r *recorded) seed(ctx context.Context, name string, last journal.Run) (start engine.Start, err error) {
	plans, err := journal.In(r.log, name).Plans(ctx, last.Event.First)
	if err != nil {
		return start, err
	}
	first := plans[0]
	batch := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}}
	if before := first.Tick - 1; before > 0 { // so that the ticks have their numbers
		batch.Journal = []store.Entry{
			journal.PlanEvent{Tick: before, First: before}.Entry(),
			journal.RunEvent{Tick: before, Status: journal.RunDone}.Entry(),
		}
	}
	for m, err := range r.log.Messages(ctx, store.Filter{Context: name, At: max(first.Start, 1)}) {
		if err != nil {
			return start, err
		}
		if m.Seq <= first.Start {
			batch.Messages = append(batch.Messages, *m)
		}
	}
	if _, err := r.twin.Append(ctx, batch); err != nil {
		return start, err
	}
	start.Request, err = r.request(ctx, name, last, plans)
	return start, err
}

// request is a run as it is recorded: a planner that gives one plan after the
// other, or the one that there is.
func (r *recorded) request(ctx context.Context, name string, last journal.Run, plans []journal.PlanEvent) (*plan.Request, error) {
	solutions := make([]plan.Solution, len(plans))
	request := &plan.Request{Name: plans[0].Plan, Outcomes: plans[0].Outcomes}
	var err error
	if request.Tools, err = plans[0].DecodeTools(); err != nil {
		return nil, err
	}
	if request.Schema, err = journal.DecodeJSON(plans[0].Schema); err != nil {
		return nil, err
	}
	for i, event := range plans {
		if event.Seq == 0 { // it was refused with its output
			continue
		}
		calls, err := journal.In(r.log, name).PlanMessage(ctx, event.Seq)
		if err != nil {
			return nil, err
		}
		solutions[i].Calls = event.Sources(calls)
		solutions[i].Choice = event.Choice
		if solutions[i].Output, err = journal.DecodeJSON(event.Output); err != nil {
			return nil, err
		}
	}
	if !plans[0].Planner {
		request.Calls, request.Choice = solutions[0].Calls, solutions[0].Choice
		request.Output = store.Optional{Value: solutions[0].Output, Set: plans[0].Output != nil}
		return request, nil
	}
	first := plans[0].Tick
	r.errors = r.errors || slices.ContainsFunc(plans, func(e journal.PlanEvent) bool { return e.Seq == 0 })
	request.Planner = plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		i := ask.Tick - first
		if i < 0 || i >= len(solutions) || i == len(solutions)-1 && plans[i].Seq == 0 && last.Error != "" {
			return nil, errors.New(cmp.Or(last.Error, fmt.Sprintf("there was no tick %d", ask.Tick)))
		}
		return &solutions[i], nil
	})
	return request, nil
}

// RunsInside reports whether a delegate's call gets its result from the delegate's run: not where
// the call failed for a reason of its own, maybe before the delegate had ended, or because the
// delegate waits without a holder, nor where the delegate's context has been pruned.
func (r *recorded) RunsInside(ctx context.Context, name, call string) bool {
	record, ok, err := r.Record(ctx, name, call)
	r.note(err)
	if err != nil || !ok {
		return true
	}
	_, there := r.log.Ends[record.Child]
	pruned := record.Child != "" && !there && r.Span(name, call).Settled.N != 0
	switch {
	case pruned:
		return false
	case record.Status != journal.Failed:
		return true
	case record.Child == "": // it was refused before there was one
		return false
	}
	last, err := journal.In(r.log, record.Child).LastRun(ctx)
	r.note(err)
	return err == nil && last.Status.Finished() && record.Error["code"] == "delegate"
}

// Written implements [script.Script].
func (r *recorded) Written(ctx context.Context, name string, record journal.Record) (paths []store.Path, values plan.ValuesByPath, err error) {
	for _, text := range record.Writes {
		path, err := store.ParsePath(text)
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, path)
	}
	values = plan.ValuesByPath{}
	for m, err := range r.log.Messages(ctx, store.Filter{Context: name, At: r.Span(name, record.Call).Settled.Seq, Newest: true}) {
		if err != nil {
			return nil, nil, logerr.Wrap(err)
		}
		if _, known := values[m.Path]; m.Call == record.Call && !known && slices.Contains(paths, m.Path) {
			values[m.Path], _ = store.Dig(m.Data.Value, m.Path)
		}
		if len(values) == len(paths) {
			break
		}
	}
	for _, path := range paths {
		if _, ok := values[path]; !ok {
			return nil, nil, fmt.Errorf("what it wrote at %s can't be found in the log", path)
		}
	}
	return paths, values, nil
}

// Request returns the request of a delegate, which needs no release.
func (r *recorded) Request(name string, request *plan.Request) *plan.Request {
	ctx := context.Background()
	run := *request
	run.Mode = ""
	if !r.ask && run.IsModelPlanned() { // no model is asked, whatever the record lacks
		run.Planner = plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
			return nil, fmt.Errorf("the record has no plan of context %s", name)
		})
	}
	last, err := journal.In(r.log, name).LastRun(ctx)
	r.note(err)
	if err != nil || last.Tick == 0 {
		return &run
	}
	plans, err := journal.In(r.log, name).Plans(ctx, last.Event.First)
	r.note(err)
	if err != nil {
		return &run
	}
	if recorded, err := r.request(ctx, name, last, plans); err == nil && run.Planner != nil && (r.recordedPlans || !r.ask && request.IsModelPlanned()) {
		run.Planner = recorded.Planner
	}
	return &run
}

// Record implements [script.Script].
func (r *recorded) Record(ctx context.Context, name, call string) (journal.Record, bool, error) {
	known, ok := r.records[name]
	if !ok {
		records, err := journal.In(r.log, name).Records(ctx)
		if err != nil {
			return journal.Record{}, false, err
		}
		known = map[string]journal.Record{}
		for _, record := range records {
			known[record.Call] = record
		}
		r.records[name] = known
	}
	record, ok := known[call]
	return record, ok, nil
}

// Child returns the context of a call's delegate, which is looked at as it was when the call
// settled; empty if it had none.
func (r *recorded) Child(ctx context.Context, name, call string) (string, error) {
	record, ok, err := r.Record(ctx, name, call)
	if err != nil || !ok || record.Child == "" {
		return "", err
	}
	if settled := r.Span(name, call).Settled.N; settled != 0 {
		err = r.log.Truncate(ctx, record.Child, settled)
	}
	return record.Child, err
}

// Span returns when a call began and settled.
func (r *recorded) Span(name, call string) journal.Span {
	known, ok := r.spans[name]
	if !ok {
		known = map[string]journal.Span{}
		for entry, err := range r.log.Journal(context.Background(), store.JournalFilter{Context: name}) {
			if err != nil {
				r.note(err)
				break
			}
			if entry.Call == "" {
				continue
			}
			s, status, now := known[entry.Call], journal.Status(entry.Event), journal.Position{Seq: entry.Seq, N: entry.N}
			switch {
			case status.Settled():
				s = journal.Span{Began: cmp.Or(s.Began, beganBy(entry)), Settled: now}
			// The first time, or once more.
			case status == journal.Running && (s.Began.N == 0 || s.Settled.N != 0):
				s = journal.Span{Began: beganBy(entry)}
			case status == journal.Blocked:
				// It is to read anew.
				if record, err := journal.ReadRecord(entry); err == nil && record.At == 0 {
					s = journal.Span{}
				}
			}
			known[entry.Call] = s
		}
		r.spans[name] = known
	}
	return known[call]
}

// beganBy is the start of a call by its first entry: as of the seq that it read at, for its start
// may be recorded later, or not at all. A call that was held read before that.
func beganBy(first store.Entry) journal.Position {
	began := journal.Position{Seq: first.Seq, N: first.N}
	if r, err := journal.ReadRecord(first); err == nil && r.At != 0 && r.Hold == nil {
		began.Seq = r.At
	}
	return began
}

// compare lists the differences between the record and the replay.
func (r *recorded) compare(ctx context.Context, name string, last journal.Run, outcome *journal.Outcome) (*Replayed, error) {
	f, err := r.foreignOf(ctx, name)
	if err == nil {
		err = r.append(ctx, name, f.messages) // those since it ended
	}
	if err != nil {
		return nil, err
	}
	done := &Replayed{Context: name}
	differ := func(d Difference) { done.Differences = append(done.Differences, d) }
	if outcome.Status != last.Status {
		differ(Difference{What: "status", Recorded: last.Status, Replayed: outcome.Status})
	}
	if !jsonvalue.Equal(outcome.Output, last.Output) {
		differ(Difference{What: "output", Recorded: last.Output, Replayed: outcome.Output})
	}
	replayed, err := journal.In(r.twin, name).Records(ctx)
	if err != nil {
		return nil, err
	}
	for _, record := range replayed {
		was, ok, err := r.Record(ctx, name, record.Call)
		if err != nil {
			return nil, err
		}
		done.Calls++
		switch {
		case ok && was.Unstored && !was.Status.Settled(): // its outcome is not in the log
		case !ok || was.Status != record.Status:
			differ(Difference{Call: record.Call, What: "status", Recorded: was.Status, Replayed: record.Status})
		case !reflect.DeepEqual(was.Writes, record.Writes):
			differ(Difference{Call: record.Call, What: "writes", Recorded: was.Writes, Replayed: record.Writes})
		}
	}
	missing, err := r.issued(ctx, name, last.Event.First)
	if err != nil {
		return nil, err
	}
	done.Differences = append(done.Differences, missing...)
	changed, err := history.Differences(ctx, r.log, history.Moment{Context: name}, r.twin, history.Moment{Context: name})
	if err != nil {
		return nil, err
	}
	for _, c := range changed {
		if store.MustParsePath(c.Path).Kind() != store.KindError || !r.errors {
			differ(Difference{What: c.Path, Recorded: c.Old.Value, Replayed: c.New.Value})
		}
	}
	return done, nil
}

// issued lists the calls that the plans of a run issue differently now, or no more.
func (r *recorded) issued(ctx context.Context, name string, first int) (all []Difference, err error) {
	was, err := callsIssued(ctx, r.log, name, first)
	if err != nil {
		return nil, err
	}
	again, err := callsIssued(ctx, r.twin, name, first)
	now := map[string]any{}
	for _, i := range again {
		now[i.call] = i.as
	}
	for _, i := range was {
		if as := now[i.call]; !jsonvalue.Equal(i.as, as) {
			all = append(all, Difference{Call: i.call, What: "issued", Recorded: i.as, Replayed: as})
		}
	}
	return all, err
}

// issued is a call as a plan has it.
type issued struct {
	call string
	as   any
}

// callsIssued are the calls of a run's plans, in their order.
func callsIssued(ctx context.Context, log store.Reader, name string, first int) (all []issued, err error) {
	plans, err := journal.In(log, name).Plans(ctx, first)
	for _, plan := range plans {
		if plan.Seq == 0 || err != nil { // it was refused
			continue
		}
		var calls []any
		calls, err = journal.In(log, name).PlanMessage(ctx, plan.Seq)
		for i, call := range calls {
			all = append(all, issued{journal.CallID(plan.Tick, i+1), call})
		}
	}
	return all, err
}
