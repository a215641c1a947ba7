package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"obelus/engine/history"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Replayed is how a run came out when it was replayed, beside what the log says
// of it.
type Replayed struct {
	Context     string
	Calls       int // that were compared
	Differences []Difference
}

// Difference is one thing that came out otherwise.
type Difference struct {
	Call     string `json:"call,omitempty"` // or, without one, a value or the run's own end
	What     string `json:"what"`           // "issued", as the plan has it, "status", "writes", "output", or a path
	Recorded any    `json:"recorded"`
	Replayed any    `json:"replayed"`
}

// Replay runs the newest run of a context again, in memory, with every activity
// answered from the record, and compares: what the log says must come out. A
// planner of the request is asked again; without a request the recorded plans
// are run. What others appended meanwhile is there from when it was. Nothing outside
// is touched, and nothing is written. Its error is an [*UnfinishedError] for a run
// that has not ended, and a [*NoPlannerError] for one whose planner the request no
// longer has.
func (r *Runner) Replay(ctx context.Context, name string, request *plan.Request) (*Replayed, error) {
	last, err := journal.In(r.Log, name).LastRun(ctx)
	switch {
	case err != nil:
		return nil, err
	case last.Tick == 0:
		return nil, &journal.NoSuchCallError{Message: fmt.Sprintf("context %s has no run to replay", name)}
	case !last.Status.Finished():
		return nil, &UnfinishedError{name, last.Status}
	}
	at, err := r.scopeOf(ctx, name)
	if err != nil {
		return nil, err
	}
	r, request = at.runner, at.requestOr(request)
	p := &replay{log: &journal.View{Log: r.Log, Ends: map[string]journal.End{}}, twin: store.NewMemory(), arrivals: map[string]*arrivals{}, records: map[string]map[string]journal.Record{}, order: map[string]map[string]journal.Span{}, wrote: map[journal.TickOf]authors{}}
	start, err := p.seed(ctx, name, last)
	if err != nil {
		return nil, err
	}
	switch {
	case start.Request.Planner == nil || request == nil:
		request = start.Request
	case request.Planner == nil:
		return nil, at.explain(&NoPlannerError{name})
	}
	p.recorded = request == start.Request
	run := *request
	run.Name, run.Mode, run.Tools, run.Schema = start.Request.Name, "", start.Request.Tools, start.Request.Schema
	run.Context = nil // it is there already
	runner := *r
	runner.Log, runner.Observe, runner.Attend, runner.replay = p.twin, nil, nil, p
	runner.Approve = plan.Policy{}                                // what was held is told by the log
	runner.Parallel, runner.pool = math.MaxInt32, newPool(ctx, 1) // calls settle one by one, in the recorded order
	outcome, err := runner.Run(ctx, Start{Context: name, Request: &run})
	if err != nil {
		return nil, at.explain(err)
	}
	return p.compare(ctx, name, last, outcome)
}

// replay answers calls from what a log says of them, one after the other.
type replay struct {
	log  *journal.View
	twin *store.Memory // where the run runs again

	recorded bool // planners are not asked again: what they gave is in the log
	errors   bool // the log may have errors that come out twice: of a plan that was refused

	arrivals map[string]*arrivals // by context

	records map[string]map[string]journal.Record // by context and call
	order   map[string]map[string]journal.Span
	wrote   map[journal.TickOf]authors
}

// seed brings the twin to where the run began, and gives the run as it is
// recorded.
func (p *replay) seed(ctx context.Context, name string, last journal.Run) (start Start, err error) {
	plans, err := plansOf(ctx, p.log, name, last.Event.First)
	if err != nil {
		return start, err
	}
	first := plans[0]
	batch := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}}
	if before := first.Tick - 1; before > 0 { // so that the ticks have their numbers
		batch.Journal = []store.Entry{
			{Event: journal.EventPlan, Data: string(store.EncodeJSON(journal.PlanEvent{Tick: before, First: before}))},
			{Event: journal.EventRun, Data: string(store.EncodeJSON(journal.RunEvent{Tick: before, Status: journal.RunDone}))},
		}
	}
	for m, err := range p.log.Messages(ctx, store.Filter{Context: name, At: max(first.Start, 1)}) {
		if err != nil {
			return start, err
		}
		if m.Seq <= first.Start {
			batch.Messages = append(batch.Messages, *m)
		}
	}
	if _, err := p.twin.Append(ctx, batch); err != nil {
		return start, err
	}
	start.Request, err = p.request(ctx, name, last, plans)
	return start, err
}

// plansOf are the plans of a run, from its first tick on.
func plansOf(ctx context.Context, log store.Log, name string, first int) ([]journal.PlanEvent, error) {
	var all []journal.PlanEvent
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, Event: journal.EventPlan}) {
		if err != nil {
			return nil, err
		}
		plan, err := journal.ReadPlanEvent(entry)
		if err != nil {
			return nil, err
		}
		if plan.Tick >= first {
			all = append(all, plan)
		}
	}
	return all, nil
}

// request is a run as it is recorded: a planner that gives one plan after the
// other, or the one that there is.
func (p *replay) request(ctx context.Context, name string, last journal.Run, plans []journal.PlanEvent) (*plan.Request, error) {
	solutions := make([]plan.Solution, len(plans))
	request := &plan.Request{Name: plans[0].Plan}
	var err error
	if request.Tools, err = plans[0].DecodeTools(); err != nil {
		return nil, err
	}
	if request.Schema, err = journal.DecodeJSON(plans[0].Schema); err != nil {
		return nil, err
	}
	for i, event := range plans {
		if event.Seq == 0 { // it was refused, output and all
			continue
		}
		calls, err := journal.In(p.log, name).PlanMessage(ctx, event.Seq)
		if err != nil {
			return nil, err
		}
		for _, call := range calls {
			solutions[i].Calls = append(solutions[i].Calls, plan.Source{Call: call, Accepted: true})
		}
		if solutions[i].Output, err = journal.DecodeJSON(event.Output); err != nil {
			return nil, err
		}
	}
	if !plans[0].Planner {
		request.Calls, request.Output, request.HasOutput = solutions[0].Calls, solutions[0].Output, plans[0].Output != nil
		return request, nil
	}
	first := plans[0].Tick
	p.errors = p.errors || slices.ContainsFunc(plans, func(e journal.PlanEvent) bool { return e.Seq == 0 })
	request.Planner = plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		i := ask.Tick - first
		if i < 0 || i >= len(solutions) || i == len(solutions)-1 && plans[i].Seq == 0 && last.Error != "" {
			return nil, errors.New(cmp.Or(last.Error, fmt.Sprintf("there was no tick %d", ask.Tick)))
		}
		return &solutions[i], nil
	})
	return request, nil
}

// answer is what a call came to, by its key: context/tick.position.
func (p *replay) answer(ctx context.Context, key string) result {
	name, call, _ := strings.Cut(key, "/")
	record, ok, err := p.record(ctx, name, call)
	switch {
	case err != nil:
		return result{err: unreadLog(ctx, err)}
	case !ok:
		return result{err: fmt.Errorf("the log knows of no such call")}
	case record.Given != nil:
		return uncapture(record.Given)
	case record.Status == journal.Failed:
		return result{err: &insideError{record.Error}}
	case len(record.Writes) == 0:
		return result{value: plan.Result{Value: record.Thought["output"]}, paths: []store.Path{}}
	}
	return p.written(ctx, name, record)
}

// inside tells whether a delegate's call is answered by what its delegate runs: not
// where it failed for a reason of its own, maybe before the delegate had ended, or since
// that waits and nobody goes on with it, nor where what that ran has been pruned.
func (p *replay) inside(ctx context.Context, name, call string) bool {
	record, ok, err := p.record(ctx, name, call)
	if err != nil || !ok {
		return true
	}
	_, there := p.log.Ends[record.Child]
	pruned := record.Child != "" && !there && p.stretch(name, call).Settled.N != 0
	if pruned || record.Status != journal.Failed {
		return !pruned
	}
	last, err := journal.In(p.log, record.Child).LastRun(ctx)
	return err == nil && last.Status.Finished() && record.Error["code"] == "delegate"
}

// written is the result of a call that wrote something.
func (p *replay) written(ctx context.Context, name string, record journal.Record) (res result) {
	for _, text := range record.Writes {
		path, err := store.ParsePath(text)
		if err != nil {
			return result{err: err}
		}
		res.paths = append(res.paths, path)
	}
	values := plan.ValuesByPath{}
	for m, err := range p.log.Messages(ctx, store.Filter{Context: name, At: p.stretch(name, record.Call).Settled.Seq, Newest: true}) {
		if err != nil {
			return result{err: unreadLog(ctx, err)}
		}
		if _, known := values[m.Path]; m.Call == record.Call && !known && slices.Contains(res.paths, m.Path) {
			values[m.Path], _ = store.Dig(m.Data, m.Path)
		}
		if len(values) == len(res.paths) {
			break
		}
	}
	for _, path := range res.paths {
		if _, ok := values[path]; !ok {
			return result{err: fmt.Errorf("what it wrote at %s can't be found in the log", path)}
		}
	}
	res.value.Value = values
	return res
}

// delegate is what a call's delegate runs. Nobody has to release it. Without a
// replay it is left as it is.
func (p *replay) delegate(name string, request *plan.Request) *plan.Request {
	if p == nil {
		return request
	}
	ctx := context.Background()
	run := *request
	run.Mode = ""
	last, err := journal.In(p.log, name).LastRun(ctx)
	if err != nil || last.Tick == 0 {
		return &run
	}
	plans, err := plansOf(ctx, p.log, name, last.Event.First)
	if err != nil {
		return &run
	}
	if recorded, err := p.request(ctx, name, last, plans); err == nil && p.recorded && run.Planner != nil {
		run.Planner = recorded.Planner
	}
	return &run
}

func (p *replay) record(ctx context.Context, name, call string) (journal.Record, bool, error) {
	known, ok := p.records[name]
	if !ok {
		records, err := journal.In(p.log, name).Records(ctx)
		if err != nil {
			return journal.Record{}, false, err
		}
		known = map[string]journal.Record{}
		for _, r := range records {
			known[r.Call] = r
		}
		p.records[name] = known
	}
	r, ok := known[call]
	return r, ok, nil
}

// person is what a person has made of a call: [journal.ReasonSkipped], [journal.ReasonGiven] or nothing.
func (p *replay) person(name, call string) string {
	if p == nil {
		return ""
	}
	record, _, err := p.record(context.Background(), name, call)
	if err == nil && (record.Status == journal.Skipped && record.Reason == journal.ReasonSkipped || record.Status == journal.Done && record.Reason == journal.ReasonGiven) {
		return record.Reason
	}
	return ""
}

// decided is what a person decided about a call: its hold, nil for none, and where it ran
// again as of when it reads, and when that was asked for.
func (p *replay) decided(name, call string) (h *journal.Hold, before, again int64) {
	record, _, err := p.record(context.Background(), name, call)
	if err != nil {
		return nil, 0, 0
	}
	if h = record.Hold; h != nil && h.Decision == "" {
		h = nil
	}
	return h, record.Before, record.SupersededUpTo
}

// wroteAgain tells of a call that ran again, or was tried again, whether it wrote something.
func (p *replay) wroteAgain(ctx context.Context, name, call string) (bool, error) {
	a, err := p.arriving(ctx, name)
	if err != nil || a.Reruns[call] == nil {
		return false, err
	}
	record, _, err := p.record(ctx, name, call)
	return len(record.Writes) > 0, err
}

// authors are those of what the log has of a tick.
func (p *replay) authors(t *tick) authors {
	of := journal.TickOf{Context: t.context, Tick: t.event.Tick}
	if known, ok := p.wrote[of]; ok {
		return known
	}
	ctx, began := context.Background(), int64(0)
	if a, err := p.arriving(ctx, of.Context); err == nil {
		began = a.Starts[of.Tick].Seq
	}
	p.wrote[of], _ = t.authorsIn(ctx, p.log, began) // what can't be read now is found to be missing when it is asked for
	return p.wrote[of]
}

// child is the context of a call's delegate, which is looked at as it was when the call
// settled; empty if it had none.
func (p *replay) child(ctx context.Context, name, call string) (string, error) {
	record, ok, err := p.record(ctx, name, call)
	if err != nil || !ok || record.Child == "" {
		return "", err
	}
	if settled := p.stretch(name, call).Settled.N; settled != 0 {
		err = p.log.Truncate(ctx, record.Child, settled)
	}
	return record.Child, err
}

// stretch is when a call began and settled.
func (p *replay) stretch(name, call string) journal.Span {
	known, ok := p.order[name]
	if !ok {
		known = map[string]journal.Span{}
		for entry, err := range p.log.Journal(context.Background(), store.JournalFilter{Context: name}) {
			if err != nil || entry.Call == "" {
				continue // what can't be read now is found to be missing when it is asked for
			}
			s, status, now := known[entry.Call], journal.Status(entry.Event), journal.Position{Seq: entry.Seq, N: entry.N}
			switch {
			case status.Settled():
				s = journal.Span{Began: cmp.Or(s.Began, beganBy(entry)), Settled: now}
			case status == journal.Running && (s.Began.N == 0 || s.Settled.N != 0): // the first time, or once more
				s = journal.Span{Began: beganBy(entry)}
			case status == journal.Blocked:
				if r, err := journal.ReadRecord(entry); err == nil && r.At == 0 { // it is to read anew
					s = journal.Span{}
				}
			}
			known[entry.Call] = s
		}
		p.order[name] = known
	}
	return known[call]
}

// beganBy is when a call began of which an entry is the first to tell: as of when it read, for
// its start may be recorded later, or not at all. One that was held read before that.
func beganBy(first store.Entry) journal.Position {
	began := journal.Position{Seq: first.Seq, N: first.N}
	if r, err := journal.ReadRecord(first); err == nil && r.At != 0 && r.Hold == nil {
		began.Seq = r.At
	}
	return began
}

// compare tells what came out otherwise.
func (p *replay) compare(ctx context.Context, name string, last journal.Run, outcome *journal.Outcome) (*Replayed, error) {
	a, err := p.arriving(ctx, name)
	if err == nil {
		err = p.append(ctx, name, a.messages) // since it ended
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
	replayed, err := journal.In(p.twin, name).Records(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range replayed {
		was, ok, err := p.record(ctx, name, r.Call)
		if err != nil {
			return nil, err
		}
		done.Calls++
		switch {
		case ok && was.LeftBehind(): // what became of it the log does not know
		case !ok || was.Status != r.Status:
			differ(Difference{Call: r.Call, What: "status", Recorded: was.Status, Replayed: r.Status})
		case !reflect.DeepEqual(was.Writes, r.Writes):
			differ(Difference{Call: r.Call, What: "writes", Recorded: was.Writes, Replayed: r.Writes})
		}
	}
	missing, err := p.issued(ctx, name, last.Event.First)
	if err != nil {
		return nil, err
	}
	done.Differences = append(done.Differences, missing...)
	changed, err := history.Differences(ctx, p.log, history.Moment{Context: name}, p.twin, history.Moment{Context: name})
	if err != nil {
		return nil, err
	}
	for _, c := range changed {
		if store.MustParsePath(c.Path).Kind() != store.KindError || !p.errors {
			differ(Difference{What: c.Path, Recorded: c.Old, Replayed: c.New})
		}
	}
	return done, nil
}

// issued tells which calls the plans of a run issue otherwise now, or no more.
func (p *replay) issued(ctx context.Context, name string, first int) (all []Difference, err error) {
	was, err := callsIssued(ctx, p.log, name, first)
	if err != nil {
		return nil, err
	}
	again, err := callsIssued(ctx, p.twin, name, first)
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
func callsIssued(ctx context.Context, log store.Log, name string, first int) (all []issued, err error) {
	plans, err := plansOf(ctx, log, name, first)
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
