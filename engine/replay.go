package engine

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

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
	Context  string `json:"context,omitempty"`
	What     string `json:"what"` // "status", "writes", "output", or a path
	Recorded any    `json:"recorded"`
	Replayed any    `json:"replayed"`
}

// Replay runs the newest run of a context again, in memory, with every activity
// answered from the record, and compares: what the log says must come out. A
// planner of the request is asked again; without a request the recorded plans
// are run. Nothing outside is touched, and nothing is written. Its error is an
// [*UnfinishedError] for a run that has not ended.
func (r *Runner) Replay(ctx context.Context, name string, request *Request) (*Replayed, error) {
	last, err := LastRun(ctx, r.Log, name)
	switch {
	case err != nil:
		return nil, err
	case last.Tick == 0:
		return nil, &NoSuchCallError{fmt.Sprintf("context %s has no run to replay", name)}
	case !last.Status.Finished():
		return nil, &UnfinishedError{name, last.Status}
	}
	p := &replay{log: r.Log, twin: store.NewMemory(), records: map[string]map[string]Record{}, order: map[string]map[string]int64{}}
	start, err := p.seed(ctx, name, last)
	if err != nil {
		return nil, err
	}
	if start.Request.Planner == nil || request == nil || request.Planner == nil {
		request = start.Request
	}
	run := *request
	run.Name, run.Mode, run.Tools, run.Schema = start.Request.Name, "", start.Request.Tools, start.Request.Schema
	runner := *r
	runner.Log, runner.Observe, runner.Attend, runner.replay = p.twin, nil, nil, p
	runner.Parallel = 1 // so that calls settle in the recorded order
	outcome, err := runner.Run(ctx, Start{Context: name, Request: &run})
	if err != nil {
		return nil, err
	}
	return p.compare(ctx, name, last, outcome)
}

// replay answers calls from what a log says of them.
type replay struct {
	log  store.Log
	twin *store.Memory // where the run runs again

	mu      sync.Mutex
	records map[string]map[string]Record // by context and call
	order   map[string]map[string]int64  // the journal's positions at which they settled
}

// seed brings the twin to where the run began, and gives the run as it is
// recorded. What others appended while it ran is there from the beginning.
func (p *replay) seed(ctx context.Context, name string, last Run) (start Start, err error) {
	plans, err := p.plans(ctx, name, last.plan.First)
	if err != nil {
		return start, err
	}
	first := plans[0]
	batch := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}}
	if before := first.Tick - 1; before > 0 { // so that the ticks have their numbers
		batch.Journal = []store.Entry{
			{Event: eventPlan, Data: encode(planEvent{Tick: before, First: before})},
			{Event: eventRun, Data: encode(runEvent{Tick: before, Status: RunDone})},
		}
	}
	for m, err := range p.log.Messages(ctx, store.Filter{Context: name}) {
		if err != nil {
			return start, err
		}
		if m.Seq <= first.Start || m.Call == "" && m.Type != store.TypePlan && m.Kind != store.KindError {
			batch.Messages = append(batch.Messages, *m)
		}
	}
	if _, err := p.twin.Append(ctx, batch); err != nil {
		return start, err
	}
	start.Request, err = p.request(ctx, name, plans)
	return start, err
}

// plans are those of a run, from its first tick on.
func (p *replay) plans(ctx context.Context, name string, first int) ([]planEvent, error) {
	var all []planEvent
	for entry, err := range p.log.Journal(ctx, store.JournalFilter{Context: name, Event: eventPlan}) {
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
func (p *replay) request(ctx context.Context, name string, plans []planEvent) (*Request, error) {
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
		if plan.Seq > 0 {
			calls, err := planMessage(ctx, p.log, name, plan.Seq)
			if err != nil {
				return nil, err
			}
			for _, call := range calls {
				solutions[i].Calls = append(solutions[i].Calls, Source{Call: call})
			}
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
	request.Planner = PlannerFunc(func(_ context.Context, ask Ask) (*Solution, error) {
		if i := ask.Tick - first; i >= 0 && i < len(solutions) {
			return &solutions[i], nil
		}
		return nil, fmt.Errorf("there was no tick %d", ask.Tick)
	})
	return request, nil
}

// answer is what a call came to, by its key: context/tick.position.
func (p *replay) answer(ctx context.Context, key string) result {
	name, call, _ := strings.Cut(key, "/")
	record, ok, err := p.record(ctx, name, call)
	switch {
	case err != nil:
		return result{err: &logError{err}}
	case !ok:
		return result{err: fmt.Errorf("the log knows of no such call")}
	case record.Given != nil:
		return uncapture(record.Given)
	case record.Status == Failed:
		return result{err: &insideError{record.Error}}
	case len(record.Writes) == 0:
		return result{value: Result{Value: record.Thought["output"]}}
	}
	path, err := store.ParsePath(record.Writes[0])
	if err != nil {
		return result{err: err}
	}
	for m, err := range p.log.Messages(ctx, store.Filter{Context: name, Path: path, Newest: true}) {
		if err != nil {
			return result{err: &logError{err}}
		}
		if m.Call == call && m.Path == path {
			value, _ := store.Dig(m.Data, path)
			return result{value: Result{To: path.String(), Value: value}}
		}
	}
	return result{err: fmt.Errorf("what it wrote at %s can't be found in the log", path)}
}

func (p *replay) record(ctx context.Context, name, call string) (Record, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
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

// settled is the position in the journal at which a call settled; 0 if it did not.
func (p *replay) settled(name, call string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.order[name]
	if !ok {
		known = map[string]int64{}
		for entry, err := range p.log.Journal(context.Background(), store.JournalFilter{Context: name}) {
			if err == nil && Status(entry.Event).Settled() && entry.Call != "" {
				known[entry.Call] = entry.N // what can't be read now is found to be missing when it is asked for
			}
		}
		p.order[name] = known
	}
	return known[call]
}

// compare tells what came out otherwise.
func (p *replay) compare(ctx context.Context, name string, last Run, outcome *Outcome) (*Replayed, error) {
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
		case !ok || was.Status != r.Status:
			differ(Difference{Call: r.Call, What: "status", Recorded: was.Status, Replayed: r.Status})
		case !reflect.DeepEqual(was.Writes, r.Writes):
			differ(Difference{Call: r.Call, What: "writes", Recorded: was.Writes, Replayed: r.Writes})
		}
	}
	old, err := valuesAt(ctx, p.log, Moment{Context: name})
	if err != nil {
		return nil, err
	}
	now, err := valuesAt(ctx, p.twin, Moment{Context: name})
	if err != nil {
		return nil, err
	}
	for _, c := range changes(old, now) {
		if store.MustParsePath(c.Path).Kind() != store.KindError || !c.HasNew {
			differ(Difference{What: c.Path, Recorded: c.Old, Replayed: c.New})
		}
	}
	return done, nil
}

func sameJSON(a, b any) bool { return string(store.EncodeJSON(a)) == string(store.EncodeJSON(b)) }
