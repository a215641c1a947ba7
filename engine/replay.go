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
func (r *Runner) Replay(ctx context.Context, name string, request *Request) (*Replayed, error) {
	last, err := LastRun(ctx, r.Log, name)
	switch {
	case err != nil:
		return nil, err
	case last.Tick == 0:
		return nil, &NoSuchCallError{Message: fmt.Sprintf("context %s has no run to replay", name)}
	case !last.Status.Finished():
		return nil, &UnfinishedError{name, last.Status}
	}
	at, err := r.within(ctx, name)
	if err != nil {
		return nil, err
	}
	r, request = at.runner, at.own(request)
	p := &replay{log: &asOf{r.Log, map[string]end{}}, twin: store.NewMemory(), arrivals: map[string]*arrivals{}, records: map[string]map[string]Record{}, order: map[string]map[string]stretch{}, wrote: map[tickOf]authors{}}
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
	runner.Approve = Policy{}                                     // what was held is told by the log
	runner.Parallel, runner.pool = math.MaxInt32, newPool(ctx, 1) // calls settle one by one, in the recorded order
	outcome, err := runner.Run(ctx, Start{Context: name, Request: &run})
	if err != nil {
		return nil, at.explain(err)
	}
	return p.compare(ctx, name, last, outcome)
}

// replay answers calls from what a log says of them, one after the other.
type replay struct {
	log  *asOf
	twin *store.Memory // where the run runs again

	recorded bool // planners are not asked again: what they gave is in the log
	errors   bool // the log may have errors that come out twice: of a plan that was refused

	arrivals map[string]*arrivals // by context

	records map[string]map[string]Record // by context and call
	order   map[string]map[string]stretch
	wrote   map[tickOf]authors
}

// tickOf names a tick.
type tickOf struct {
	context string
	tick    int
}

// stretch is when a call began and settled. One that was refused or skipped began when it
// settled; nothing is for one that did not.
type stretch struct{ began, settled moment }

// seed brings the twin to where the run began, and gives the run as it is
// recorded.
func (p *replay) seed(ctx context.Context, name string, last Run) (start Start, err error) {
	plans, err := plansOf(ctx, p.log, name, last.plan.First)
	if err != nil {
		return start, err
	}
	first := plans[0]
	batch := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}}
	if before := first.Tick - 1; before > 0 { // so that the ticks have their numbers
		batch.Journal = []store.Entry{
			{Event: eventPlan, Data: string(store.EncodeJSON(planEvent{Tick: before, First: before}))},
			{Event: eventRun, Data: string(store.EncodeJSON(runEvent{Tick: before, Status: RunDone}))},
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
func plansOf(ctx context.Context, log store.Log, name string, first int) ([]planEvent, error) {
	var all []planEvent
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, Event: eventPlan}) {
		if err != nil {
			return nil, err
		}
		plan, err := readPlanEvent(entry)
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
func (p *replay) request(ctx context.Context, name string, last Run, plans []planEvent) (*Request, error) {
	solutions := make([]Solution, len(plans))
	request := &Request{Name: plans[0].Plan}
	var err error
	if request.Tools, err = plans[0].tools(); err != nil {
		return nil, err
	}
	if request.Schema, err = decode(plans[0].Schema); err != nil {
		return nil, err
	}
	for i, plan := range plans {
		if plan.Seq == 0 { // it was refused, output and all
			continue
		}
		calls, err := planMessage(ctx, p.log, name, plan.Seq)
		if err != nil {
			return nil, err
		}
		for _, call := range calls {
			solutions[i].Calls = append(solutions[i].Calls, Source{Call: call, accepted: true})
		}
		if solutions[i].Output, err = decode(plan.Output); err != nil {
			return nil, err
		}
	}
	if !plans[0].Planner {
		request.Calls, request.Output, request.HasOutput = solutions[0].Calls, solutions[0].Output, plans[0].Output != nil
		return request, nil
	}
	first := plans[0].Tick
	p.errors = p.errors || slices.ContainsFunc(plans, func(e planEvent) bool { return e.Seq == 0 })
	request.Planner = PlannerFunc(func(_ context.Context, ask Ask) (*Solution, error) {
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
	case record.Status == Failed:
		return result{err: &insideError{record.Error}}
	case len(record.Writes) == 0:
		return result{value: Result{Value: record.Thought["output"]}, paths: []store.Path{}}
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
	_, there := p.log.ends[record.Child]
	pruned := record.Child != "" && !there && p.stretch(name, call).settled.n != 0
	if pruned || record.Status != Failed {
		return !pruned
	}
	last, err := LastRun(ctx, p.log, record.Child)
	return err == nil && last.Status.Finished() && record.Error["code"] == "delegate"
}

// written is the result of a call that wrote something.
func (p *replay) written(ctx context.Context, name string, record Record) (res result) {
	for _, text := range record.Writes {
		path, err := store.ParsePath(text)
		if err != nil {
			return result{err: err}
		}
		res.paths = append(res.paths, path)
	}
	values := byPath{}
	for m, err := range p.log.Messages(ctx, store.Filter{Context: name, At: p.stretch(name, record.Call).settled.seq, Newest: true}) {
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
func (p *replay) delegate(name string, request *Request) *Request {
	if p == nil {
		return request
	}
	ctx := context.Background()
	run := *request
	run.Mode = ""
	last, err := LastRun(ctx, p.log, name)
	if err != nil || last.Tick == 0 {
		return &run
	}
	plans, err := plansOf(ctx, p.log, name, last.plan.First)
	if err != nil {
		return &run
	}
	if recorded, err := p.request(ctx, name, last, plans); err == nil && p.recorded && run.Planner != nil {
		run.Planner = recorded.Planner
	}
	return &run
}

func (p *replay) record(ctx context.Context, name, call string) (Record, bool, error) {
	known, ok := p.records[name]
	if !ok {
		records, err := Records(ctx, p.log, name)
		if err != nil {
			return Record{}, false, err
		}
		known = map[string]Record{}
		for _, r := range records {
			known[r.Call] = r
		}
		p.records[name] = known
	}
	r, ok := known[call]
	return r, ok, nil
}

// person is what a person has made of a call: [skippedByPerson], [givenByPerson] or nothing.
func (p *replay) person(name, call string) string {
	if p == nil {
		return ""
	}
	record, _, err := p.record(context.Background(), name, call)
	if err == nil && (record.Status == Skipped && record.Reason == skippedByPerson || record.Status == Done && record.Reason == givenByPerson) {
		return record.Reason
	}
	return ""
}

// decided is what a person decided about a call: its hold, nil for none, and where it ran
// again as of when it reads, and when that was asked for.
func (p *replay) decided(name, call string) (h *Hold, before, again int64) {
	record, _, err := p.record(context.Background(), name, call)
	if err != nil {
		return nil, 0, 0
	}
	if h = record.Hold; h != nil && h.Decision == "" {
		h = nil
	}
	return h, record.Before, record.Again
}

// wroteAgain tells of a call that ran again, or was tried again, whether it wrote something.
func (p *replay) wroteAgain(ctx context.Context, name, call string) (bool, error) {
	a, err := p.arriving(ctx, name)
	if err != nil || a.again[call] == nil {
		return false, err
	}
	record, _, err := p.record(ctx, name, call)
	return len(record.Writes) > 0, err
}

// authors are those of what the log has of a tick.
func (p *replay) authors(t *tick) authors {
	of := tickOf{t.context, t.event.Tick}
	if known, ok := p.wrote[of]; ok {
		return known
	}
	ctx, began := context.Background(), int64(0)
	if a, err := p.arriving(ctx, of.context); err == nil {
		began = a.starts[of.tick].seq
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
	if settled := p.stretch(name, call).settled.n; settled != 0 {
		err = p.log.cut(ctx, record.Child, settled)
	}
	return record.Child, err
}

// stretch is when a call began and settled.
func (p *replay) stretch(name, call string) stretch {
	known, ok := p.order[name]
	if !ok {
		known = map[string]stretch{}
		for entry, err := range p.log.Journal(context.Background(), store.JournalFilter{Context: name}) {
			if err != nil || entry.Call == "" {
				continue // what can't be read now is found to be missing when it is asked for
			}
			s, status, now := known[entry.Call], Status(entry.Event), moment{entry.Seq, entry.N}
			switch {
			case status.Settled():
				s = stretch{began: cmp.Or(s.began, beganBy(entry)), settled: now}
			case status == Running && (s.began.n == 0 || s.settled.n != 0): // the first time, or once more
				s = stretch{began: beganBy(entry)}
			case status == Blocked:
				if r, err := readRecord(entry); err == nil && r.At == 0 { // it is to read anew
					s = stretch{}
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
func beganBy(first store.Entry) moment {
	began := moment{first.Seq, first.N}
	if r, err := readRecord(first); err == nil && r.At != 0 && r.Hold == nil {
		began.seq = r.At
	}
	return began
}

// compare tells what came out otherwise.
func (p *replay) compare(ctx context.Context, name string, last Run, outcome *Outcome) (*Replayed, error) {
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
	if !sameJSON(outcome.Output, last.Output) {
		differ(Difference{What: "output", Recorded: last.Output, Replayed: outcome.Output})
	}
	replayed, err := Records(ctx, p.twin, name)
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
		case ok && was.leftBehind(): // what became of it the log does not know
		case !ok || was.Status != r.Status:
			differ(Difference{Call: r.Call, What: "status", Recorded: was.Status, Replayed: r.Status})
		case !reflect.DeepEqual(was.Writes, r.Writes):
			differ(Difference{Call: r.Call, What: "writes", Recorded: was.Writes, Replayed: r.Writes})
		}
	}
	missing, err := p.issued(ctx, name, last.plan.First)
	if err != nil {
		return nil, err
	}
	done.Differences = append(done.Differences, missing...)
	changed, err := differences(ctx, p.log, Moment{Context: name}, p.twin, Moment{Context: name})
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
		if as := now[i.call]; !sameJSON(i.as, as) {
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
		calls, err = planMessage(ctx, log, name, plan.Seq)
		for i, call := range calls {
			all = append(all, issued{callID(plan.Tick, i+1), call})
		}
	}
	return all, err
}

func sameJSON(a, b any) bool { return string(store.EncodeJSON(a)) == string(store.EncodeJSON(b)) }
