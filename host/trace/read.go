package trace

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// recordedRun is one run of a context as the journal has it.
type recordedRun struct {
	plan         string // its file, or the delegate
	began, ended time.Time
	status       journal.RunStatus
	failure      string
	output       any
	planned      []plannedTick
	calls        []journal.Record // in the order of its plans

	arguments map[string]map[string]any // by call; only with content
	wrote     map[string][]any          // by call; only with content
}

// plannedTick is a tick whose plan a model made.
type plannedTick struct {
	tick  int
	date  time.Time // when the plan was recorded
	usage *plan.Usage
}

// readRun reads the run whose first tick is first, with content if that is asked for. Its error is
// an [ErrNoRun] where there is none.
func readRun(ctx context.Context, in journal.Context, first int, content bool) (*recordedRun, error) {
	if _, err := in.Log.Head(ctx, in.Name); err != nil {
		return nil, err
	}
	_, begun, err := in.FindTick(ctx, first)
	if err != nil {
		return nil, err
	}
	if begun.N == 0 {
		return nil, ErrNoRun
	}
	r := &recordedRun{status: journal.RunRunning}
	plans := map[int]int64{} // seq of the plan message, by tick
	records, err := in.RecordsFrom(ctx, first, begun.N-1, func(entry store.Entry) error { return r.add(entry, first, plans) })
	if err != nil {
		return nil, err
	}
	for _, call := range records {
		if _, own := plans[call.Tick]; own {
			r.calls = append(r.calls, call)
		}
	}
	if content {
		return r, r.readContent(ctx, in, plans)
	}
	return r, nil
}

// add adds an entry of the journal, if it is of the run whose first tick is first.
func (r *recordedRun) add(entry store.Entry, first int, plans map[int]int64) error {
	switch {
	case entry.Event == journal.EventPlan:
		event, err := journal.ReadPlanEvent(entry)
		if err != nil || cmp.Or(event.First, 1) != first {
			return err
		}
		if len(plans) == 0 {
			r.began, r.plan = entry.Date, event.Plan
		}
		plans[event.Tick], r.ended = event.Seq, entry.Date
		if event.Model != nil && event.Model.Requests > 0 {
			r.planned = append(r.planned, plannedTick{event.Tick, entry.Date, event.Model})
		}
	case entry.Event == journal.EventRun:
		end, output, err := journal.ReadRunEvent(entry)
		if _, own := plans[end.Tick]; err != nil || !own {
			return err
		}
		r.ended, r.failure, r.output = entry.Date, end.Error, output
		if r.status = end.Status; r.status == journal.RunContinued {
			r.status = journal.RunRunning
		}
	case entry.Call != "":
		tick, _ := journal.PlaceOf(entry.Call)
		if _, own := plans[tick]; own {
			r.ended = entry.Date
		}
	}
	return nil
}

// endOf returns the end of a call: where it has no outcome yet, the last that is known of its run.
func (r *recordedRun) endOf(call journal.Record, began time.Time) time.Time {
	if call.Status.Settled() || call.Duration > 0 {
		return began.Add(time.Duration(call.Duration * float64(time.Millisecond)))
	}
	return r.ended
}

// readContent reads the arguments of the run's calls, as their plans have them, and the values that
// they wrote.
func (r *recordedRun) readContent(ctx context.Context, in journal.Context, plans map[int]int64) error {
	r.arguments, r.wrote = map[string]map[string]any{}, map[string][]any{}
	for _, tick := range slices.Sorted(maps.Keys(plans)) {
		if plans[tick] == 0 { // its planner gave no valid plan
			continue
		}
		calls, err := in.PlanMessage(ctx, plans[tick])
		if err != nil {
			return err
		}
		for i, call := range calls {
			r.arguments[journal.CallID(tick, i+1)], _ = call.(map[string]any)
		}
	}
	for m, err := range in.Log.Messages(ctx, store.Filter{Context: in.Name}) {
		if err != nil {
			return err
		}
		if _, own := r.arguments[m.Call]; own && m.Data.Set {
			r.wrote[m.Call] = append(r.wrote[m.Call], m.Data.Value)
		}
	}
	return nil
}

// addContent adds the arguments of a call and its result to its span.
func (r *recordedRun) addContent(span *Span, call journal.Record) {
	arguments := map[string]any{}
	for name, v := range r.arguments[call.Call] {
		if name[:min(1, len(name))] != "_" {
			arguments[name] = v
		}
	}
	span.text("gen_ai.tool.call.arguments", string(store.EncodeJSON(arguments)))
	switch wrote := r.wrote[call.Call]; len(wrote) {
	case 0:
	case 1:
		span.text("gen_ai.tool.call.result", string(store.EncodeJSON(wrote[0])))
	default:
		span.text("gen_ai.tool.call.result", string(store.EncodeJSON(wrote)))
	}
}
