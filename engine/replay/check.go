package replay

import (
	"context"
	"slices"

	"obelus/engine/internal/declared"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/output"
	"obelus/engine/internal/reading"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// check is the check of one run. It goes through the record step by step: its view has the messages
// that there were at a step, and the states of its ticks have the records of the calls.
type check struct {
	*replayer
	*record
	depth    int // how many delegates it is within
	registry *plan.Registry
	request  *plan.Request // whose planner is asked again; nil where plans are taken from the log

	view     *store.View
	declared *declared.Schemas
	hidden   int // number of superseded messages that are hidden
	tools    map[string]*plan.Tool
	ticks    []*tick
	reported map[string]any // what error messages that report failures of calls say, by call
}

// tick is a tick of the run.
type tick struct {
	event   *journal.PlanEvent
	plan    *plan.Plan
	state   *sched.State
	writers reading.Writers
	given   map[int]plan.Invocation // arguments and scopes of calls with a delegate, by index
}

// newCheck returns the check of a run of a context, before its first step.
func (p *replayer) newCheck(r *record, registry *plan.Registry, depth int) *check {
	view := store.NewView(nil, r.context)
	return &check{
		replayer: p, record: r, depth: depth, registry: registry,
		view: view, declared: &declared.Schemas{View: view, Options: registry.Schemas}, tools: map[string]*plan.Tool{}, reported: map[string]any{},
	}
}

// differ adds a difference.
func (c *check) differ(d Difference) {
	if c.context != c.done.Context {
		d.Context = c.context
	}
	c.done.Differences = append(c.done.Differences, d)
}

// run goes through the record.
func (c *check) run(ctx context.Context) error {
	for i := range c.steps {
		var err error
		switch s := &c.steps[i]; {
		case s.plan != nil:
			err = c.beginTick(ctx, s)
		case s.call != nil:
			err = c.checkCall(ctx, i)
		case c.ends[s.end.Tick] == i:
			err = c.checkEnd(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// advance brings the view to a seq, without what is superseded at a position in the journal.
func (c *check) advance(seq, n int64) error {
	for m := c.message(c.view.Seq() + 1); m != nil && m.Seq <= seq; m = c.message(m.Seq + 1) {
		c.view.Stage(*m)
		if m.Type == store.TypeTool {
			if err := c.registry.ReadTools(m, c.tools); err != nil {
				return err
			}
		}
		c.noteWriter(m)
	}
	for ; c.hidden < len(c.superseded) && c.superseded[c.hidden].since <= n; c.hidden++ {
		c.view.Hide(c.superseded[c.hidden].seq)
	}
	return nil
}

// noteWriter keeps the call that wrote a message, or the failure that the message reports.
func (c *check) noteWriter(m *store.Message) {
	writer, isReport := m.Call, c.isReport(m)
	if isReport {
		failed, _ := journal.ReportedFailure(m)
		writer, c.reported[failed] = failed, m.Data.Value
	}
	number, i := journal.PlaceOf(writer)
	if isReport {
		i = reading.Reports
	}
	if t := c.tickOf(number); t != nil {
		t.writers[m.Seq] = i
	}
}

// isReport reports whether an error message is one with which a tick ended, and not foreign.
func (c *check) isReport(m *store.Message) bool {
	return m != nil && m.Call == "" && m.Kind == store.KindError && c.timeline.TickEndingWith(m.Seq) > 0
}

// beginTick compiles the plan of a tick as of its start, once its planner was asked again.
func (c *check) beginTick(ctx context.Context, s *step) error {
	t := &tick{event: s.plan, plan: plan.Empty(), writers: reading.Writers{}, given: map[int]plan.Invocation{}}
	calls, err := c.planAt(t.event.Seq)
	if err == nil && c.request != nil {
		err = c.askAgain(ctx, t, calls, s.n)
	}
	if err == nil {
		err = c.advance(t.event.Start, s.n)
	}
	if err == nil && t.event.MessageSeq() != t.event.Seq { // as a person corrected it
		calls, err = c.planAt(t.event.MessageSeq())
	}
	if err == nil && t.event.Seq > 0 {
		t.plan, err = t.event.Compile(calls, c.registry.With(c.tools), c.exists(ctx), plan.CompileRequest)
	}
	if err != nil {
		return err
	}
	t.state = sched.New(sched.Config{Plan: t.plan}, func(i int) journal.Record {
		return journal.NewRecord(t.event.Tick, t.plan.Calls[i])
	})
	c.ticks = append(c.ticks, t)
	return c.advance(s.seq, s.n)
}

// exists returns a function that tells which paths have a value now.
func (c *check) exists(ctx context.Context) plan.Exists {
	return func(path store.Path, instance string) (bool, error) {
		resolved, err := c.view.Resolver().Resolve(ctx, path, instance)
		return resolved.Exists, err
	}
}

// tickOf returns a tick of the run that has begun, nil for none.
func (c *check) tickOf(number int) *tick {
	if i := number - c.first; i >= 0 && i < len(c.ticks) {
		return c.ticks[i]
	}
	return nil
}

// checkCall takes the record of a call, once it is compared.
func (c *check) checkCall(ctx context.Context, i int) error {
	s := &c.steps[i]
	t, k := c.tickOf(s.call.Tick), s.call.Position-1
	if t == nil || k < 0 || k >= len(t.plan.Calls) {
		return journal.UnknownCall(store.Entry{Context: c.context, N: s.n, Call: s.call.Call})
	}
	if err := c.advance(s.seq, s.n); err != nil {
		return err
	}
	if s.call.Status == journal.Ready && t.state.Calls[k].Record.Status != journal.Held {
		return nil // a second decision: the first counts
	}
	l := c.lives[s.call.Call]
	of := &call{check: c, tick: t, index: k, Call: t.plan.Calls[k], life: l, newest: l.newest}
	if l.began == i {
		if err := of.checkStart(ctx); err != nil {
			return err
		}
	}
	t.state.Load(k, *s.call)
	if l.settled == i {
		return of.checkOutcome(ctx, s)
	}
	return nil
}

// checkEnd compares the end of a tick: its status, its output, and the reports of failures.
func (c *check) checkEnd(ctx context.Context, s *step) error {
	t, number := c.tickOf(s.end.Tick), s.end.Tick
	if t == nil {
		return c.damaged("entry %d ends tick %d, which has not begun", s.n, number)
	}
	if err := c.advance(s.seq, s.n); err != nil {
		return err
	}
	for i := range t.state.Calls {
		r := &t.state.Calls[i].Record
		report := map[string]any{"call": r.Call, "tool": r.Tool, "error": map[string]any(r.Error)}
		if r.Blamed() && !jsonvalue.Equal(c.reported[r.Call], report) {
			c.differ(Difference{Call: r.Call, What: "†" + store.KindError, Recorded: c.reported[r.Call], Replayed: report})
		}
	}
	value, problem, err := c.outputOf(ctx, t, s)
	if err != nil {
		return err
	}
	if number == c.last.Tick {
		number = 0
	}
	if status := t.endsAs(s.end, value, problem); s.end.Status != status {
		c.differ(Difference{Tick: number, What: "status", Recorded: s.end.Status, Replayed: status})
	}
	if !jsonvalue.Equal(s.end.Output, value) {
		c.differ(Difference{Tick: number, What: "output", Recorded: s.end.Output, Replayed: value})
	}
	return nil
}

// endsAs returns the status with which a tick ends, given its output. A bound on how often the
// planner is asked is taken from the record: it may be another one by now.
func (t *tick) endsAs(end *journal.RunEvent, value any, problem error) journal.RunStatus {
	isBounded := end.Status == journal.RunFailed && end.Error != ""
	switch {
	case t.event.Planner && value == nil && isBounded:
		return journal.RunFailed
	case t.event.Planner && value == nil:
		return journal.RunContinued
	case problem != nil:
		return journal.RunFailed
	}
	return t.state.RunStatus()
}

// outputOf computes the output of a tick that ends with a step. Messages that report what is wrong
// with it are the last ones there, and it does not see them.
func (c *check) outputOf(ctx context.Context, t *tick, s *step) (v any, problem, err error) {
	if t.event.IsRejected() {
		return nil, t.event.Rejection(), nil
	}
	resolver := c.view.Resolver()
	resolver.At = s.seq
	for m := c.message(s.seq); c.isReport(m); m = c.message(m.Seq - 1) {
		if call, _ := journal.ReportedFailure(m); call != "" {
			break
		}
		resolver.At = m.Seq - 1
	}
	of := output.Tick{
		Plan: t.plan, Event: t.event, State: t.state, Resolver: resolver,
		MessageAt: func(seq int64) (*store.Message, error) { return c.message(seq), nil },
		Explain:   func(err error) error { return err },
	}
	return of.Value(ctx)
}

// isReady reports whether a call need wait for no other, as the records of those stand. A condition
// that does not hold, or fails, waits for less.
func (t *tick) isReady(i int, r *journal.Record) bool {
	isDecidedByIf := t.plan.Calls[i].If != nil && (r.If == nil || !r.If.Holds)
	return !slices.ContainsFunc(t.plan.Graph.Into[i], func(e plan.Edge) bool {
		from := &t.state.Calls[e.From].Record
		hasBegun := from.At != 0 || from.Started != ""
		suffices := hasBegun && (e.Kind == plan.ReadEdge || from.Unstored)
		isLeft := !from.Status.Settled() && !suffices
		return isLeft && (!isDecidedByIf || e.Kind == plan.IfEdge)
	})
}
