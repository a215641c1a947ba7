package replay

import (
	"context"
	"strconv"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/logerr"
	"obelus/engine/internal/proposal"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// asksAgain reports whether the planner of a request is asked again about a run, whose newest tick
// is given.
func (p *replayer) asksAgain(request *plan.Request, last *journal.PlanEvent) bool {
	isPlanned := last.Planner && request != nil && request.Planner != nil
	return p.asks && isPlanned && (p.ask || !request.IsModelPlanned())
}

// askAgain asks the planner for the plan of a tick once more, as of when the tick began, at a
// position in the journal, and compares what it gives with the recorded calls and output.
func (c *check) askAgain(ctx context.Context, t *tick, calls []any, n int64) error {
	asked := t.event.Start
	planning, isModel := c.request.Planner.(*plan.Planning)
	if q := t.event.Question; isModel && q != nil {
		asked = q.Seq
	}
	if err := c.advance(asked, n); err != nil {
		return err
	}
	request := *c.request
	from := proposal.Source{Context: journal.In(c.runner.Log, c.context), View: c.view, Request: &request, Tick: t.event.Tick}
	for _, earlier := range c.ticks {
		from.Plans = append(from.Plans, *earlier.event)
	}
	var solution *plan.Solution
	var err error
	if isModel {
		var answer proposal.Answer
		answer, err = from.Propose(ctx, planning, c.registry.With(c.tools).WithRequest(&request), c.meter(t))
		solution, request.Shown = answer.Solution, answer.Shown
	} else {
		solution, _, err = from.Consult(ctx, true)
	}
	if cause, ok := logerr.Cause(err); ok {
		return cause
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		request.Calls, request.Choice = solution.Calls, solution.Choice
		request.Output = store.Optional{Value: solution.Output, Set: solution.Output != nil}
		err = request.Choose()
	}
	return c.comparePlan(ctx, t, calls, &request, err)
}

// meter returns the meter of a model that is asked for the plan of a tick.
func (c *check) meter(t *tick) *plan.Meter {
	watch := c.runner.Watch
	if watch == nil {
		return plan.NewMeter(c.account, nil)
	}
	return plan.NewMeter(c.account, func(text string) { watch(c.context, strconv.Itoa(t.event.Tick), text) })
}

// comparePlan compares what a planner gave for a tick, or why it failed, with the recorded plan. Of
// one that was refused the log has only that.
func (c *check) comparePlan(ctx context.Context, t *tick, calls []any, request *plan.Request, failed error) error {
	if plan.EveryInstance(request.Calls) {
		held, err := c.view.Kinds(ctx)
		if err != nil {
			return err
		}
		request.Calls = plan.ExpandInstances(request.Calls, plan.Instances(held))
	}
	issued, _ := plan.Message(request).Data.Value.([]any)
	hadPlan := t.event.Seq != 0
	if failed == nil && !hadPlan {
		_, failed = plan.CompileRequest(request, c.registry.With(c.tools), c.exists(ctx))
	}
	switch {
	case failed != nil && hadPlan:
		c.differ(Difference{Tick: t.event.Tick, What: "plan", Recorded: calls, Replayed: failed.Error()})
	case failed == nil && !hadPlan:
		c.differ(Difference{Tick: t.event.Tick, What: "plan", Replayed: issued})
	case hadPlan:
		c.compareIssued(t, calls, issued)
		return c.compareOutput(t, request)
	}
	return nil
}

// compareIssued compares the calls of a plan one by one.
func (c *check) compareIssued(t *tick, calls, issued []any) {
	at := func(all []any, i int) any {
		if i < len(all) {
			return all[i]
		}
		return nil
	}
	for i := range max(len(calls), len(issued)) {
		if was, is := at(calls, i), at(issued, i); !jsonvalue.Equal(was, is) {
			c.differ(Difference{Call: journal.CallID(t.event.Tick, i+1), What: "issued", Recorded: was, Replayed: is})
		}
	}
}

// compareOutput compares the output of a solution, and the alternative that it goes to.
func (c *check) compareOutput(t *tick, request *plan.Request) error {
	was, err := journal.DecodeJSON(t.event.Output)
	if err != nil {
		return err
	}
	if !jsonvalue.Equal(was, request.Output.Value) || !jsonvalue.Equal(t.event.Choice, request.Choice) {
		c.differ(Difference{Tick: t.event.Tick, What: "output", Recorded: was, Replayed: request.Output.Value})
	}
	return nil
}
