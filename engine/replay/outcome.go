package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/internal/capture"
	"obelus/engine/internal/failure"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/logerr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// result is the result of a call as it follows from the rest of the log.
type result struct {
	err    error // the call fails
	paths  []store.Path
	value  any // a [plan.ValuesByPath] where paths have values of their own
	loose  bool
	unseen bool // the value is not known
}

// checkOutcome compares how the call settled, in a step, and what it wrote.
func (c *call) checkOutcome(ctx context.Context, s *step) error {
	r := c.newest
	known, err := c.result(ctx, s)
	if err != nil {
		return err
	}
	isRefused := r.Status == journal.Failed && slices.Contains([]any{"method", "result", plan.CodeSchema}, r.Error["code"])
	switch {
	case known != nil && known.err != nil:
		c.expect(journal.Failed)
	case known != nil && !isRefused: // else its result did not fit where it was to go
		c.expect(journal.Done)
	}
	if alternatives := c.alternatives(known); !slices.Contains(alternatives, strings.Join(r.Writes, " && ")) {
		c.differ("writes", r.Writes, alternatives)
		return nil
	}
	return c.checkWrites(ctx, s, known)
}

// alternatives returns the alternatives of the output path that the call may have written: the
// empty one unless it is done, and the last if it failed.
func (c *call) alternatives(known *result) []string {
	all := c.Alternatives()
	switch {
	case c.newest.Status != journal.Done || c.Output == nil:
		return []string{""}
	case known != nil:
		place := func(paths []store.Path) bool { return slices.Equal(paths, known.paths) }
		i := slices.IndexFunc(c.Output.Alternatives, place)
		return all[max(i, 0):][:1]
	case c.newest.Handled != nil:
		return all[len(all)-1:]
	}
	return all
}

// checkWrites compares the messages of the call with its record.
func (c *call) checkWrites(ctx context.Context, s *step, known *result) error {
	wrote := map[string]*store.Message{}
	for _, seq := range c.life.wrote {
		if seq > c.seq() && seq <= s.seq && !c.view.Hides(seq) {
			m := c.message(seq)
			wrote[m.Path.String()] = m
		}
	}
	if there := slices.Sorted(maps.Keys(wrote)); !slices.Equal(there, slices.Sorted(slices.Values(c.newest.Writes))) {
		c.differ("writes", c.newest.Writes, there)
		return nil
	}
	var paths []store.Path
	for _, text := range c.newest.Writes {
		m := wrote[text]
		paths = append(paths, m.Path)
		if err := c.checkMessage(ctx, m, known); err != nil {
			return err
		}
	}
	err := c.declared.Check(ctx, c.Call, paths, func(path store.Path) any {
		v, _ := store.Dig(wrote[path.String()].Data.Value, path)
		return v
	})
	if cause, ok := logerr.Cause(err); ok || err == nil {
		return cause
	}
	c.differ("error", nil, failure.Fields(err))
	return nil
}

// checkMessage compares a message of the call with the plan, and with the result, if that is known.
func (c *call) checkMessage(ctx context.Context, m *store.Message, known *result) error {
	c.compareValue("_call", m.Producer, c.newest.Hold.Correct(c.Issued))
	c.compareValue("_outputMethod", m.Method, c.Method)
	v, _ := store.Dig(m.Data.Value, m.Path)
	if known != nil && !known.unseen {
		want, err := c.valueAt(ctx, known, m.Path)
		if err != nil {
			return err
		}
		c.compareValue(m.Path.String(), v, want)
	}
	err := c.fits(ctx, m)
	if misfit, ok := errors.AsType[*plan.Fault](err); ok {
		c.differ(m.Path.String(), v, misfit.Error())
		return nil
	}
	return err
}

// valueAt returns the value of a result that the call writes at a path.
func (c *call) valueAt(ctx context.Context, r *result, path store.Path) (any, error) {
	v := r.value
	if values, ok := v.(plan.ValuesByPath); ok {
		v = values[path]
	}
	if !r.loose {
		return v, nil
	}
	listed, err := c.declared.Lists(ctx, c.Call, path, v)
	if cause, ok := logerr.Cause(err); ok || err == nil {
		return listed, cause
	}
	return v, nil
}

// fits returns a [*plan.Fault] if a message of the call does not fit the value that it joined.
// What a call that ran again has written did fit.
func (c *call) fits(ctx context.Context, m *store.Message) error {
	if len(c.timeline.Reruns[c.newest.Call]) > 0 {
		return nil
	}
	op, _ := m.Op()
	return c.reads().CheckJoin(c.index, func(resolver store.Resolver) error {
		resolver.At = m.Seq - 1
		return resolver.CheckOp(ctx, op)
	})
}

// result returns the result of the call where it follows from the rest of the log; nil where only
// an activity, a model or a person knew it.
func (c *call) result(ctx context.Context, s *step) (*result, error) {
	r := c.newest
	isPlanned := r.Answered != nil && r.Answered.How == journal.WithPlan
	switch h := r.Hold; {
	case r.Status == journal.Skipped || r.Reason == journal.ReasonGiven:
		return nil, nil
	case h != nil && h.Decision == journal.Rejected:
		fields := map[string]any{"message": h.Reason, "code": journal.Rejected}
		return c.place(plan.Result{}, &plan.Failure{Fields: fields}), nil
	case !c.hasRun(): // it was refused
		return nil, nil
	case r.Given != nil:
		return c.place(capture.Unpack(r.Given)), nil
	case c.Answer != nil && isPlanned && c.Answer.Failure != nil:
		return c.place(plan.Result{}, c.Answer.Failure), nil
	case c.Answer != nil && isPlanned:
		return c.place(c.Answer.Result, nil), nil
	case c.Answer == nil && c.Activity == nil:
		return c.place(plan.Result{Value: c.Given.Value}, nil), nil
	case c.Delegate != nil && r.Child != "":
		return c.delegated(ctx, s)
	}
	return nil, nil
}

// place returns where a result goes; nil if it goes nowhere.
func (c *call) place(res plan.Result, err error) *result {
	switch {
	case c.Output != nil:
		paths, value, err := c.Place(&res, err)
		return &result{paths: paths, value: value, loose: res.Loose, err: err}
	case err != nil:
		return &result{err: err}
	}
	return nil
}

// delegated checks the run of the call's delegate, as it was when the call settled in a step, and
// returns what its recorded end makes of the call. It is nil where the call failed for a reason of
// its own, or the delegate's context has been pruned.
func (c *call) delegated(ctx context.Context, s *step) (*result, error) {
	r := c.newest
	failedItself := r.Status == journal.Failed && r.Error["code"] != "delegate"
	if failedItself || c.depth > plan.MaxDepth {
		return nil, nil
	}
	record, err := readRecord(ctx, c.runner.Log, r.Child, s.n)
	if errors.Is(err, store.ErrNoContext) {
		return nil, nil
	}
	if err != nil || !record.last.OfDelegate() {
		return nil, err
	}
	end, hasEnded := record.ends[record.last.Tick]
	if !hasEnded || !record.status.Finished() {
		if r.Status == journal.Done {
			c.expect(journal.Waiting)
		}
		return nil, nil
	}
	inside := c.newCheck(record, c.Delegate.RegistryFor(c.registry), c.depth+1)
	given, isKnown := c.tick.given[c.index]
	request := c.Request(given)
	if c.asksAgain(request, record.last) {
		if inside.request, err = request.Normalize(); err != nil {
			return nil, err
		}
	}
	if isKnown {
		inside.checkOpening(c.Opening(given))
	}
	if err := inside.run(ctx); err != nil {
		return nil, fmt.Errorf("delegate %s (context %s): %w", request.Name, r.Child, err)
	}
	return c.resultOf(inside.ticks[len(inside.ticks)-1], record.steps[end].end), nil
}

// resultOf returns what the end of the delegate's run makes of the call.
func (c *call) resultOf(last *tick, end *journal.RunEvent) *result {
	isAnonymous, hasFailed := c.Delegate.Name == plan.Anonymous, end.Status == journal.RunFailed
	calls, choice := last.state.Calls, last.event.Choice
	res := plan.Result{Value: end.Output, Loose: true}
	switch {
	case hasFailed && isAnonymous:
		return &result{err: errors.New("the delegate failed")}
	case !hasFailed && isAnonymous && len(calls) == 1 && calls[0].Record.Status == journal.Done:
		return c.place(capture.Unpack(calls[0].Record.Given))
	case hasFailed, end.Output == nil && c.Output != nil:
		known := c.place(plan.Result{}, &plan.Failure{})
		known.unseen = true
		return known
	case choice != nil && choice.Fails:
		fields, _ := end.Output.(map[string]any)
		return c.place(plan.Result{}, &plan.Failure{Fields: fields, Loose: true})
	case choice != nil:
		res.To = choice.To
	}
	return c.place(res, nil)
}

// checkOpening compares the messages with which a delegate's run began, behind its own, with those
// that its call gave it.
func (c *check) checkOpening(granted []store.Message, input store.Optional) {
	if input.Set {
		granted = append(granted, store.Message{Kind: "input", Data: input})
	}
	for i, given := range granted {
		m, v := c.message(c.start-int64(len(granted)-1-i)), any(nil)
		if m != nil && m.Kind == given.Kind {
			v = m.Data.Value
		}
		if !jsonvalue.Equal(v, given.Data.Value) {
			c.differ(Difference{What: store.KindPath(given.Kind).String(), Recorded: v, Replayed: given.Data.Value})
		}
	}
}
