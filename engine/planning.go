package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"obelus/engine/internal/logerr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// modelTicks is how often a model that plans is asked in a run, unless the runner says otherwise.
const modelTicks = 20

// errRepeats ends a run whose model does not get on.
type errRepeats struct{ first, second int }

func (e *errRepeats) Error() string {
	return fmt.Sprintf("the model repeats itself: ticks %d and %d have the same calls, and the second brought nothing new", e.first, e.second)
}

// askForPlan asks a model for the calls of a tick.
func (l *loop) askForPlan(ctx context.Context, number int, request *plan.Request, planning *plan.Planning) (*plan.Solution, error) {
	l.planUsage = nil
	registry, err := l.registryNow(ctx)
	if err != nil {
		return nil, logerr.Wrap(err)
	}
	registry = registry.WithRequest(request)
	model, err := planning.ModelFor(registry)
	if err != nil { // the run is refused, and has not failed
		problem := plan.Problem{File: request.Name, Severity: plan.SeverityError, Code: plan.CodeUnknownTool, Message: err.Error()}
		return nil, logerr.Wrap(&plan.PlanError{Problems: []plan.Problem{problem}})
	}
	last, err := l.lastPlans(ctx)
	if err != nil {
		return nil, logerr.Wrap(err)
	}
	if repeats, err := l.repeats(ctx, last); err != nil {
		return nil, logerr.Wrap(err)
	} else if repeats {
		return nil, &errRepeats{number - 2, number - 1}
	}
	p, err := l.proposal(ctx, number, request, last)
	if err != nil {
		return nil, logerr.Wrap(err)
	}
	p.Tools = planning.Offers(registry)
	p.Meter = plan.NewMeter(l.runner.account, l.runner.watchModel(l.context, strconv.Itoa(number)))
	defer func() { l.planUsage = p.Meter.Used() }()
	limit := plan.TimeoutOf(model)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	solution, err := consult(limited, plan.PlannerFunc(func(ctx context.Context, _ plan.Ask) (*plan.Solution, error) {
		return model.Propose(ctx, p)
	}), plan.Ask{})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the model gave no plan within %s: %w", limit, err)
	}
	return solution, err
}

// lastPlans returns the events of the run's ticks so far.
func (l *loop) lastPlans(ctx context.Context) ([]journal.PlanEvent, error) {
	if !l.begun || l.tick < l.first {
		return nil, nil
	}
	return journal.In(l.runner.Log, l.context).Plans(ctx, l.first)
}

// proposal builds the question to a model that plans, its tools and its meter apart.
func (l *loop) proposal(ctx context.Context, number int, request *plan.Request, last []journal.PlanEvent) (plan.Proposal, error) {
	p := plan.Proposal{Context: l.context, Tick: number, Key: fmt.Sprintf("%s/%d", l.context, number), Schema: request.Schema, Mode: request.Mode}
	if p.Mode == "" {
		p.Mode = plan.ModeEager
	}
	held, err := l.view.Kinds(ctx)
	if err != nil {
		return p, err
	}
	p.Instances = plan.Instances(held)[1:]
	messages, err := l.messages(ctx)
	if err != nil {
		return p, err
	}
	shown, prose, err := plan.Audience{Scopes: request.Scopes, Only: true}.Show(ctx, messages)
	if err != nil {
		return p, err
	}
	p.Prose, l.plannerSaw = prose, map[string]int64{}
	for _, k := range shown {
		if k.Kind == store.KindError { // those of the tick before are shown apart
			continue
		}
		p.Kinds = append(p.Kinds, k)
		path := store.KindPath(k.Kind).String()
		l.plannerSaw[path] = max(l.plannerSaw[path], k.Seq)
	}
	if len(last) == 0 {
		return p, nil
	}
	before := last[len(last)-1]
	for _, m := range messages {
		if data, ok := m.Data.Value.(map[string]any); ok && m.Seq > before.Start && m.Kind == store.KindError {
			p.Errors = append(p.Errors, data)
		}
	}
	records, err := journal.In(l.runner.Log, l.context).RecordsFrom(ctx, before.Tick, 0, 0)
	for i := range records {
		p.Last = append(p.Last, lastCall(&records[i]))
	}
	return p, err
}

// lastCall describes a call of the tick before to a model.
func lastCall(r *journal.Record) plan.LastCall {
	last := plan.LastCall{Call: r.Call, Tool: r.Tool, Status: r.Outcome(), Wrote: r.Writes, Reason: r.Reason}
	for _, fields := range []plan.Values{r.Handled, r.Error} {
		if message, ok := fields["message"].(string); ok {
			last.Reason = message
		}
	}
	return last
}

// messages returns the messages that count in the context, staged ones included.
func (l *loop) messages(ctx context.Context) (all []*store.Message, err error) {
	if l.view.Committed() > 0 {
		for m, err := range l.runner.Log.Messages(ctx, store.Filter{Context: l.context, At: l.view.Committed()}) {
			if err != nil {
				return nil, err
			}
			if !l.view.Hides(m.Seq) {
				all = append(all, m)
			}
		}
	}
	staged := l.view.Staged()
	for i := range staged {
		all = append(all, &staged[i])
	}
	return all, nil
}

// repeats reports whether the last two ticks had the same calls, and the second brought nothing new:
// every kind but the errors is as it was before.
func (l *loop) repeats(ctx context.Context, plans []journal.PlanEvent) (bool, error) {
	if len(plans) < 2 {
		return false, nil
	}
	x, y := plans[len(plans)-2], plans[len(plans)-1]
	if x.Seq == 0 || y.Seq == 0 || x.Calls != y.Calls {
		return false, nil
	}
	var texts [2][]byte
	for i, event := range []journal.PlanEvent{x, y} {
		calls, err := journal.In(l.runner.Log, l.context).PlanMessage(ctx, event.Seq)
		if err != nil {
			return false, err
		}
		texts[i] = store.EncodeJSON(calls)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		return false, nil
	}
	return l.unchangedSince(ctx, y.Start)
}

// unchangedSince reports whether the values of all kinds but the errors are as they were at a seq.
func (l *loop) unchangedSince(ctx context.Context, seq int64) (bool, error) {
	if seq == 0 {
		return false, nil
	}
	held, err := l.view.Kinds(ctx)
	if err != nil {
		return false, err
	}
	for _, k := range held {
		if k.Kind == store.KindError {
			continue
		}
		now, err := l.view.Resolver().Resolve(ctx, store.KindPath(k.Kind), k.Instance)
		if err != nil {
			return false, err
		}
		r := l.view.Resolver()
		r.At = seq
		then, err := r.Resolve(ctx, store.KindPath(k.Kind), k.Instance)
		if err != nil {
			return false, err
		}
		if now.Exists != then.Exists || !bytes.Equal(store.EncodeJSON(now.Value), store.EncodeJSON(then.Value)) {
			return false, nil
		}
	}
	return true, nil
}

// boundRefusals returns the problem that ends a run once a model's solutions were refused too often
// in a row; else the problem as it is.
func (e *ending) boundRefusals(problem error) error {
	refused := e.event.Refused
	limit := plan.DefaultRefusals
	if request := e.loop.request; request != nil {
		if planning, ok := request.Planner.(*plan.Planning); ok {
			limit = positive(planning.Refusals, limit)
		}
	}
	if !e.event.ByModel || refused == nil || refused.Times < limit {
		return problem
	}
	return &plannerError{fmt.Errorf("the model's plans were refused %d times in a row: %w", refused.Times, problem)}
}

// countSpent opens the account of a resumed run, in which models may have spent something already.
func (l *loop) countSpent(ctx context.Context, first int) error {
	if l.runner.depth > 0 || l.runner.account == nil {
		return nil
	}
	spent, err := journal.SpentOn(ctx, journal.In(l.runner.Log, l.context), first)
	if err != nil && !errors.Is(err, store.ErrNoContext) {
		return err
	}
	l.runner.account = plan.NewAccount(l.runner.Budget, spent)
	return nil
}
