package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// HeldPlan is a plan that waits for a person's decision (protocol §7, Lazy plans).
type HeldPlan struct {
	Context string
	Run     journal.Run
	Calls   []any // as written, those that were dropped included
	Hash    string
}

// HeldPlan returns the plan that waits for a decision in a context or, if its own does not, in the
// only one of its delegates' contexts with such a plan. Its error is a [*journal.NoSuchCallError]
// where none waits, or several do.
func (r *Runner) HeldPlan(ctx context.Context, name string) (*HeldPlan, error) {
	last, err := journal.In(r.Log, name).LastRun(ctx)
	if err != nil {
		return nil, err
	}
	if !last.Held {
		if name, err = r.delegateWithHeldPlan(ctx, name, last); err != nil {
			return nil, err
		}
		if last, err = journal.In(r.Log, name).LastRun(ctx); err != nil {
			return nil, err
		}
	}
	calls, err := journal.In(r.Log, name).PlanMessage(ctx, last.Event.MessageSeq())
	return &HeldPlan{name, last, calls, journal.PlanHash(name, &last.Event, calls)}, err
}

// delegateWithHeldPlan returns the only delegate's context in which a plan waits.
func (r *Runner) delegateWithHeldPlan(ctx context.Context, name string, last journal.Run) (string, error) {
	plans, err := journal.In(r.Log, name).LazyInside(ctx)
	if err != nil {
		return "", err
	}
	contexts := make([]string, len(plans))
	for i, p := range plans {
		contexts[i] = p.Context
	}
	switch {
	case len(plans) == 0:
		return "", &journal.NoSuchCallError{Message: fmt.Sprintf("context %s has no plan that waits to be approved", name)}
	case last.Event.Mode == plan.ModeLazy: // a second decision must not be about another plan
		return "", journal.SeveralContexts("the plan of context "+name+" was approved before, and a delegate's waits", contexts)
	case len(plans) > 1:
		return "", journal.SeveralContexts(fmt.Sprintf("%d delegates have plans that wait", len(plans)), contexts)
	}
	return contexts[0], nil
}

// DecidePlan records a person's decision about a plan that waits for one: it runs once its context
// is resumed, as it was given or as the decision corrects it, or, if it is rejected, its planner is
// asked for another one. It returns the plan's context. A plan that was corrected is checked as any
// plan is; where it is refused the error is a [*plan.PlanError] or a [*journal.CorrectionError],
// and nothing is recorded. It is a [*journal.NoSuchCallError] where no plan waits, where that is
// not the plan that the decision names, or where another decision was first.
func (r *Runner) DecidePlan(ctx context.Context, d journal.PlanDecision) (string, error) {
	held, err := r.HeldPlan(ctx, d.Context)
	if err != nil {
		return "", err
	}
	if err := held.checkHash(d.Hash); err != nil {
		return "", err
	}
	event := journal.PlanDecisionEvent{Hash: held.Hash, Who: d.Who}
	if d.Reject {
		event.Decision, event.Reason = journal.Rejected, cmp.Or(strings.TrimSpace(d.Reason), "rejected by a person")
		var skipped []journal.Record
		for i := range held.Calls {
			skipped = append(skipped, held.skipped(i, journal.ReasonPlanRejected))
		}
		return held.Context, held.Run.Decide(ctx, r.Log, held.Context, event, nil, skipped)
	}
	if inherited := held.Run.Event.Decision; inherited != nil { // the plan was corrected before a fork
		event = *inherited
		event.Hash, event.Who = held.Hash, d.Who
	}
	change, err := r.correct(ctx, held, d)
	if err != nil || change == nil {
		if err == nil {
			err = held.Run.Decide(ctx, r.Log, held.Context, event, nil, nil)
		}
		return held.Context, err
	}
	event.Shown, event.Set, event.Without = change.shown, change.set, change.without
	message := store.Message{Type: store.TypePlan, Data: store.Some(change.calls), Mode: held.Run.Event.Mode, Date: r.date()}
	return held.Context, held.Run.Decide(ctx, r.Log, held.Context, event, []store.Message{message}, change.dropped)
}

// checkHash refuses a decision about another plan than the one that waits.
func (h *HeldPlan) checkHash(hash string) error {
	if hash == "" || hash == h.Hash {
		return nil
	}
	return &journal.NoSuchCallError{Message: fmt.Sprintf("the plan that waits in context %s is %s, and not %s: it has to be looked at before it is decided about", h.Context, h.Hash, hash)}
}

// planChange is a plan as a person has corrected it.
type planChange struct {
	calls      []any
	shown, set plan.Values // of the corrected places; null for a call that is dropped
	without    []string    // all calls that are dropped
	dropped    []journal.Record
	plan       *plan.Plan // compiled anew
}

// correct returns the plan as a decision corrects it; nil for a decision that corrects nothing.
func (r *Runner) correct(ctx context.Context, held *HeldPlan, d journal.PlanDecision) (*planChange, error) {
	if len(d.Set)+len(d.Without) == 0 {
		return nil, nil
	}
	c := &planChange{calls: slices.Clone(held.Calls), shown: plan.Values{}, set: plan.Values{}}
	event := held.Run.Event
	if before := event.Decision; before != nil {
		maps.Copy(c.shown, before.Shown)
		maps.Copy(c.set, before.Set)
		c.without = slices.Clone(before.Without)
	}
	for _, call := range d.Without {
		if err := c.drop(held, d.Who, call); err != nil {
			return nil, err
		}
	}
	corrected, err := c.applySet(held, d.Set)
	if err != nil {
		return nil, err
	}
	event.Decision = &journal.PlanDecisionEvent{Set: c.set, Without: c.without}
	p, err := r.scopeOf(ctx, held.Context)
	if err != nil {
		return nil, err
	}
	compile := func(request *plan.Request, registry *plan.Registry, there plan.Exists) (*plan.Plan, error) {
		for i := range request.Calls {
			request.Calls[i].Call = c.calls[i]
			if corrected[i] { // checked as any call of a plan is
				request.Calls[i].Accepted = false
			}
		}
		return plan.CompileRequest(request, registry, there)
	}
	c.plan, err = (&loop{runner: p.runner, context: held.Context}).compileRecorded(ctx, event, nil, compile)
	return c, p.explain(err)
}

// indexOf returns the index of a call of the plan, such as "1.2".
func (h *HeldPlan) indexOf(call string) (int, error) {
	if i, ok := journal.IndexInTick(h.Run.Tick, call); ok && i < len(h.Calls) {
		return i, nil
	}
	return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in the plan that waits: its calls are %s to %s", call, journal.CallID(h.Run.Tick, 1), journal.CallID(h.Run.Tick, len(h.Calls))), Absent: true}
}

// drop drops a call.
func (c *planChange) drop(held *HeldPlan, who journal.Who, named string) error {
	i, err := held.indexOf(named)
	if err != nil {
		return err
	}
	call := journal.CallID(held.Run.Tick, i+1)
	if slices.Contains(c.without, call) {
		return &journal.NoSuchCallError{Message: fmt.Sprintf("call %s is dropped already", call)}
	}
	c.without = append(c.without, call)
	c.shown[call], c.set[call] = held.Calls[i], nil
	c.dropped = append(c.dropped, held.skipped(i, journal.ReasonDropped+who.Name()))
	return nil
}

// skipped returns the record of a call that a decision about the plan skips, by its index.
func (h *HeldPlan) skipped(i int, reason string) journal.Record {
	issued, _ := h.Calls[i].(map[string]any)
	tool, _ := issued["_tool"].(string)
	instance, _ := issued["_instance"].(string)
	return journal.Record{
		Call: journal.CallID(h.Run.Tick, i+1), Tick: h.Run.Tick, Position: i + 1, Tool: tool, Instance: instance, Status: journal.Skipped, Reason: reason,
	}
}

// applySet puts corrections into the calls. It returns which calls they are in, by index.
func (c *planChange) applySet(held *HeldPlan, set map[string]any) (corrected map[int]bool, err error) {
	byCall := map[int]map[string]any{}
	for key, v := range set {
		call, place, err := cutCall(key)
		if err != nil {
			return nil, err
		}
		i, err := held.indexOf(call)
		if err != nil {
			return nil, err
		}
		if byCall[i] == nil {
			byCall[i] = map[string]any{}
		}
		byCall[i][place] = v
	}
	corrected = map[int]bool{}
	for i, places := range byCall {
		call := journal.CallID(held.Run.Tick, i+1)
		issued, _ := held.Calls[i].(map[string]any)
		made, err := correctCall(call, issued, places)
		if err != nil {
			return nil, &journal.CorrectionError{Call: call, Err: err}
		}
		c.calls[i], corrected[i] = made, true
		for place, v := range places {
			c.set[call+"."+place] = v
			_, wasCorrected := c.shown[call+"."+place]
			if old, ok := valueAt(issued, plan.CorrectionPlace(place, issued)); ok && !wasCorrected {
				c.shown[call+"."+place] = old
			}
		}
		if slices.Contains(c.without, call) {
			return nil, &journal.CorrectionError{Call: call, Err: fmt.Errorf("it is dropped, and can't be corrected as well")}
		}
	}
	return corrected, nil
}

// correctCall returns a call with other values at places in it.
func correctCall(call string, issued, places map[string]any) (map[string]any, error) {
	for _, fixed := range []string{"_tool", "_instance"} {
		if _, ok := places[fixed]; ok {
			return nil, fmt.Errorf("%s can't be corrected: drop the call, or reject the plan with a reason", fixed)
		}
	}
	made, err := (&journal.Hold{Arguments: issued}).With(places)
	if err != nil {
		return nil, err
	}
	return plan.NormalizeObject(made, call)
}

// cutCall cuts "1.2.amount" into the call and the place in it.
func cutCall(key string) (call, place string, err error) {
	parts := strings.SplitN(key, ".", 3)
	if len(parts) == 3 && parts[2] != "" {
		_, wrongTick := strconv.Atoi(parts[0])
		_, wrongPosition := strconv.Atoi(parts[1])
		if wrongTick == nil && wrongPosition == nil {
			return parts[0] + "." + parts[1], parts[2], nil
		}
	}
	return "", "", &journal.CorrectionError{Call: key, Err: fmt.Errorf("a correction of a plan names the call and the place in it: 1.2.amount")}
}

// valueAt returns the value at a place; ok is false where there is none.
func valueAt(v any, place []string) (any, bool) {
	for _, key := range place {
		switch of := v.(type) {
		case map[string]any:
			inner, ok := of[key]
			if !ok {
				return nil, false
			}
			v = inner
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(of) {
				return nil, false
			}
			v = of[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// PreviewPlan says in lines what a decision about a plan that waits would have its calls do
// otherwise: those that read what no call writes any more, or that a correction has read what is
// missing, and those that wait for them. It records nothing; its errors are those of
// [Runner.DecidePlan].
func (r *Runner) PreviewPlan(ctx context.Context, d journal.PlanDecision) (effects []string, err error) {
	held, err := r.HeldPlan(ctx, d.Context)
	if err != nil {
		return nil, err
	}
	if err := held.checkHash(d.Hash); err != nil {
		return nil, err
	}
	change, err := r.correct(ctx, held, d)
	if err != nil || change == nil {
		return nil, err
	}
	before, err := r.compileHeld(ctx, held)
	if before == nil {
		return nil, err
	}
	superseded, err := journal.In(r.Log, held.Context).Superseded(ctx)
	if err != nil {
		return nil, err
	}
	resolver := store.Resolver{Log: superseded.Without(r.Log), Context: held.Context}
	waits := map[int]bool{}
	for i, call := range change.plan.Calls {
		what := "call " + journal.CallID(held.Run.Tick, call.Position)
		if call.Dropped {
			continue
		}
		for _, path := range call.Refs {
			isRead := i < len(before.Calls) && slices.Contains(before.Calls[i].Refs, path)
			hadSource := isRead && len(before.Graph.SourcesOf(i, path)) > 0
			if isRead && !hadSource || len(change.plan.Graph.SourcesOf(i, path)) > 0 {
				continue
			}
			resolved, err := resolver.Resolve(ctx, path, call.Instance)
			switch {
			case err != nil:
				return nil, err
			case !resolved.Exists && hadSource:
				effects = append(effects, fmt.Sprintf("%s would wait for %s, which no call writes any more", what, path))
			case !resolved.Exists:
				effects = append(effects, fmt.Sprintf("%s would wait for %s, which nothing has written", what, path))
			case hadSource:
				effects = append(effects, fmt.Sprintf("%s would read %s as it is now: %.200s", what, path, store.EncodeJSON(resolved.Value)))
			}
			waits[i] = waits[i] || !resolved.Exists
		}
	}
	effects = append(effects, held.waitingFor(change.plan, waits)...)
	if change.plan.Output == nil {
		return effects, nil
	}
	for _, path := range change.plan.Output.Reads() {
		if writesTo(before, path) && !writesTo(change.plan, path) {
			effects = append(effects, fmt.Sprintf("the output reads %s, which no call writes any more", path))
		}
	}
	return effects, nil
}

// waitingFor says which calls of a changed plan would wait for others that wait, by index.
func (h *HeldPlan) waitingFor(p *plan.Plan, waits map[int]bool) (effects []string) {
	for more := len(waits) > 0; more; {
		more = false
		for i, call := range p.Calls {
			for _, path := range call.Refs {
				sources := p.Graph.SourcesOf(i, path)
				isCut := len(sources) > 0 && !slices.ContainsFunc(sources, func(j int) bool { return !waits[j] })
				if isCut && !waits[i] && !call.Dropped {
					waits[i], more = true, true
					effects = append(effects, fmt.Sprintf("call %s would wait with call %s", journal.CallID(h.Run.Tick, call.Position), journal.CallID(h.Run.Tick, p.Calls[sources[0]].Position)))
				}
			}
		}
	}
	return effects
}

// writesTo reports whether a call of a plan may write what a path reads.
func writesTo(p *plan.Plan, path store.Path) bool {
	return slices.ContainsFunc(p.Calls, func(call *plan.Call) bool {
		return slices.ContainsFunc(call.Output.Writes(), path.Overlaps)
	})
}

// compileHeld compiles the plan as it waits. Where it can't run with the tools as they are now, it
// returns the plan as far as it is understood beside a [*plan.PlanError], or nil.
func (r *Runner) compileHeld(ctx context.Context, held *HeldPlan) (*plan.Plan, error) {
	p, err := r.scopeOf(ctx, held.Context)
	if err != nil {
		return nil, err
	}
	compiled, err := (&loop{runner: p.runner, context: held.Context}).compileRecorded(ctx, held.Run.Event, nil, plan.CompileAccepted)
	return compiled, p.explain(err)
}

// ShowPlan returns the plan that waits in a context, see [Runner.HeldPlan], as it is shown to the
// person who is to decide. permissions returns those that the activity of a call may use.
func (r *Runner) ShowPlan(ctx context.Context, name string, permissions func(*plan.Call) []string) (*history.ShownPlan, error) {
	held, err := r.HeldPlan(ctx, name)
	if err != nil {
		return nil, err
	}
	compiled, refused := r.compileHeld(ctx, held)
	if _, isRefused := errors.AsType[*plan.PlanError](refused); refused != nil && !isRefused {
		return nil, refused
	}
	if compiled == nil {
		compiled = plan.Empty()
	}
	shown, err := history.ShowPlan(ctx, journal.In(r.Log, held.Context), &held.Run, held.Hash, compiled, permissions)
	if err == nil && refused != nil {
		shown.Problem = refused.Error()
	}
	return shown, err
}

// reject makes a person's rejection of the plan, whose calls it has skipped, the problem of the
// tick. A model is told of it as of a plan that was refused.
func (t *tickRun) reject(ctx context.Context, d *journal.PlanDecisionEvent) error {
	t.event.Decision = d
	t.problem, t.loop.current = t.event.Rejection(), t
	if t.event.Planner {
		earlier, err := journal.In(t.runner.Log, t.context).Plans(ctx, t.event.First)
		if err != nil {
			return err
		}
		t.event.Refused = &journal.Refusal{Digest: d.Hash, Times: journal.RefusedInARow(earlier)}
		t.loop.refused = t.event.Refused
	}
	return nil
}
