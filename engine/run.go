package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/store"
)

// Runner runs plans over a log. Its fields are set before it is used; one
// Runner may run many contexts at once.
type Runner struct {
	Log      store.Log
	Registry *Registry

	Parallel int           // how many calls run at once; 0 for DefaultParallel
	Drain    time.Duration // how long calls may go on that a run leaves behind: fire-and-forget ones at its end, all when it is interrupted; 0 for DefaultDrain, less for no time

	// Observe, if it is set, is told of every change of a call's status, once
	// it is recorded. It is called from one goroutine at a time for each run.
	Observe func(Record)

	// Now is the clock; nil for the system's.
	Now func() time.Time
}

// Defaults of [Runner].
const (
	DefaultParallel = 8
	DefaultDrain    = 5 * time.Second
)

// Start is a run to begin.
type Start struct {
	Context string // created if it is absent
	Request *Request

	// Input is appended as one input message, if HasInput is set.
	Input    any
	HasInput bool
}

// Outcome is how a run ended, or where it stands.
type Outcome struct {
	Context string
	Status  RunStatus
	Output  any    // null without one
	Error   string // why the run failed, where no single call is to blame
	Calls   []Record
}

// UnfinishedError is a run in a context whose last tick has not come to its
// end.
type UnfinishedError struct {
	Context string
	Status  RunStatus
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("context %s has an unfinished run (%s): go on with it by: obelus resume -c %s", e.Context, e.Status, e.Context)
}

// BusyError is a context that another process runs at the same time. What that
// one records stands; this one has stopped.
type BusyError struct{ Context string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("context %s is run by another process: this one has stopped", e.Context)
}

// NoSuchCallError names a call that is not in the tick that is resumed.
type NoSuchCallError struct{ Message string }

func (e *NoSuchCallError) Error() string { return e.Message }

// Run appends a request's messages, its input and its plan to a context, and
// runs the plan. A plan that is refused gives a [*PlanError], a message that
// is refused a [*MessageError], and either leaves no trace. When ctx is done
// nothing more starts, what runs has the time that Drain allows, and the run
// can be resumed.
func (r *Runner) Run(ctx context.Context, s Start) (*Outcome, error) {
	for range maxConflicts {
		t, err := r.begin(ctx, s)
		if err != nil {
			return nil, err
		}
		outcome, err := t.run(ctx)
		var conflict *store.ConflictError
		if t.begun || !errors.As(err, &conflict) {
			return outcome, err
		}
	}
	return nil, fmt.Errorf("context %s is appended to by others all the time: gave up after %d tries", s.Context, maxConflicts)
}

// Check compiles a plan as Run would, on what the context holds now (or on an
// empty one, without a context), and runs and writes nothing.
func (r *Runner) Check(ctx context.Context, s Start) (*Plan, error) {
	_, plan, err := r.prepare(ctx, s)
	return plan, err
}

// prepare stages a request's messages and its input, and compiles its plan on
// top of them.
func (r *Runner) prepare(ctx context.Context, s Start) (*store.View, *Plan, error) {
	view, err := store.OpenView(ctx, r.Log, s.Context)
	if err != nil {
		return nil, nil, err
	}
	messages := slices.Clone(s.Request.Context)
	if s.HasInput {
		messages = append(messages, store.Message{Type: store.TypeData, Kind: "input", Data: s.Input, HasData: true})
	}
	if err := admit(ctx, view, messages); err != nil {
		var refused *MessageError
		if errors.As(err, &refused) {
			refused.Input = s.HasInput && refused.Number == len(messages)
		}
		return nil, nil, err
	}
	registry, err := contextTools(ctx, r.Log, s.Context, r.Registry)
	if err != nil {
		return nil, nil, err
	}
	plan, err := Compile(s.Request, registry, exists(ctx, view.Resolver()))
	return view, plan, err
}

// begin stages all that a run appends, its plan last.
func (r *Runner) begin(ctx context.Context, s Start) (*tick, error) {
	last, err := LastRun(ctx, r.Log, s.Context)
	if err != nil {
		return nil, err
	}
	if !last.Status.Finished() {
		return nil, &UnfinishedError{s.Context, last.Status}
	}
	view, plan, err := r.prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	start := view.Seq()
	view.Stage(planOf(s.Request))
	event := planEvent{
		Tick: last.Tick + 1, Plan: s.Request.Name, Seq: view.Seq(), Start: start, Calls: len(plan.Calls), Schema: s.Request.Schema,
	}
	if s.Request.Tools != nil {
		event.Tools = encode(s.Request.Tools)
	}
	if s.Request.HasOutput {
		event.Output = encode(s.Request.Output)
	}
	t := newTick(r, s.Context, plan, view, event)
	t.journal(store.Entry{Event: eventPlan, Data: encode(event)})
	return t, nil
}

func planOf(request *Request) store.Message {
	calls := make([]any, len(request.Calls))
	for i, src := range request.Calls {
		calls[i] = src.Call
	}
	return store.Message{Type: store.TypePlan, Data: calls, HasData: true, Mode: request.Mode}
}

// contextTools adds the tools that a context's messages define.
func contextTools(ctx context.Context, log store.Log, name string, registry *Registry) (*Registry, error) {
	tools := map[string]*Tool{}
	for m, err := range log.Messages(ctx, store.Filter{Context: name, Type: store.TypeTool}) {
		if err != nil {
			return nil, err
		}
		definitions, _ := m.Data.(map[string]any)
		for tool, schema := range definitions {
			compiled, err := NewTool(tool, schema)
			if err != nil {
				return nil, err
			}
			tools[tool] = compiled
		}
	}
	return registry.With(tools), nil
}

func exists(ctx context.Context, resolver store.Resolver) Exists {
	return func(path store.Path, instance string) (bool, error) {
		resolved, err := resolver.Resolve(ctx, path, instance)
		return resolved.Exists, err
	}
}

// Resume is how to go on with a run.
type Resume struct {
	Context string
	Retry   []string // calls that failed or are in doubt, to run again
	Skip    []string // calls that failed or are in doubt, to go on without
}

// Resume goes on with the newest run of a context: what has a recorded outcome
// keeps it, all else runs. A run that is finished, with nothing to retry,
// gives its outcome again.
func (r *Runner) Resume(ctx context.Context, s Resume) (*Outcome, error) {
	last, err := LastRun(ctx, r.Log, s.Context)
	if err != nil {
		return nil, err
	}
	if last.Tick == 0 {
		return nil, &NoSuchCallError{fmt.Sprintf("context %s has no run to resume", s.Context)}
	}
	t, err := r.reopen(ctx, s.Context, last)
	if err != nil {
		return nil, err
	}
	if err := t.decide(s); err != nil {
		return nil, err
	}
	if last.Status.Finished() && len(s.Retry)+len(s.Skip) == 0 {
		return &Outcome{Context: s.Context, Status: last.Status, Output: last.Output, Error: last.Error, Calls: t.all()}, nil
	}
	return t.run(ctx)
}

// reopen builds a recorded tick as it stood.
func (r *Runner) reopen(ctx context.Context, name string, last Run) (*tick, error) {
	view, err := store.OpenView(ctx, r.Log, name)
	if err != nil {
		return nil, err
	}
	registry, err := contextTools(ctx, r.Log, name, r.Registry)
	if err != nil {
		return nil, err
	}
	calls, err := planMessage(ctx, r.Log, name, last.plan.Seq)
	if err != nil {
		return nil, err
	}
	request := &Request{Name: last.Plan, Schema: last.plan.Schema}
	for _, call := range calls {
		request.Calls = append(request.Calls, Source{Call: call})
	}
	if last.plan.Tools != nil {
		tools, err := store.DecodeJSON(last.plan.Tools)
		if err != nil {
			return nil, err
		}
		request.Tools, _ = tools.(map[string]any)
	}
	if last.plan.Output != nil {
		request.HasOutput = true
		if request.Output, err = store.DecodeJSON(last.plan.Output); err != nil {
			return nil, err
		}
	}
	atStart := store.Resolver{Log: r.Log, Context: name, At: last.plan.Start}
	there := exists(ctx, atStart)
	if last.plan.Start == 0 {
		there = NothingExists
	}
	plan, err := Compile(request, registry, there)
	if err != nil {
		return nil, err
	}
	t := newTick(r, name, plan, view, last.plan)
	t.begun = true
	records, err := Records(ctx, r.Log, name)
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		if record.Tick == last.Tick {
			t.restore(record)
		}
	}
	return t, t.readReported(ctx)
}

// readReported finds whose failures became error messages already.
func (t *tick) readReported(ctx context.Context) error {
	reported := map[string]bool{}
	for m, err := range t.runner.Log.Messages(ctx, store.Filter{Context: t.context, After: t.event.Seq, Kind: store.KindError}) {
		if err != nil {
			return err
		}
		data, _ := m.Data.(map[string]any)
		if call, ok := data["call"].(string); ok {
			reported[call] = true
		}
	}
	for i := range t.calls {
		t.calls[i].reported = reported[t.calls[i].record.Call]
	}
	return nil
}

// decide applies a person's decisions to calls of the tick.
func (t *tick) decide(s Resume) error {
	for _, name := range s.Retry {
		i, err := t.decidable(name)
		if err != nil {
			return err
		}
		t.revive(i)
	}
	for _, name := range s.Skip {
		i, err := t.decidable(name)
		if err != nil {
			return err
		}
		c := &t.calls[i]
		c.record.Status, c.record.Reason = Skipped, "skipped by a person"
		t.note(i)
	}
	return nil
}

func (t *tick) decidable(name string) (int, error) {
	position, ok := strings.CutPrefix(name, strconv.Itoa(t.event.Tick)+".")
	i, err := strconv.Atoi(position)
	if !ok || err != nil || i < 1 || i > len(t.calls) {
		return 0, &NoSuchCallError{fmt.Sprintf("no call %q in the last tick: its calls are %s to %s", name, callID(t.event.Tick, 1), callID(t.event.Tick, len(t.calls)))}
	}
	if status := t.calls[i-1].record.Status; status != Failed && status != InDoubt {
		return 0, &NoSuchCallError{fmt.Sprintf("call %s is %s: only one that failed or is in doubt can be retried or skipped", name, status)}
	}
	return i - 1, nil
}

// revive makes a call run again, and what was skipped behind it be looked at
// again.
func (t *tick) revive(i int) {
	c := &t.calls[i]
	attempts := c.record.Attempts
	c.record, c.reported = t.fresh(i), false
	c.record.Attempts = attempts
	t.note(i)
	for _, e := range t.plan.graph.outOf[i] {
		if e.kind == dataEdge && t.calls[e.to].record.Status == Skipped {
			t.revive(e.to)
		}
	}
}
