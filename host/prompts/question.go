package prompts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/spell"
	"obelus/store"
)

// NotFoundError is a request that was not made: the context has no such call, or no model is asked
// about it.
type NotFoundError struct{ message string }

func (e *NotFoundError) Error() string { return e.message }

// Class implements the interface of [store.ClassOf].
func (e *NotFoundError) Class() store.Class { return store.NotFound }

func notFound(format string, args ...any) error { return &NotFoundError{fmt.Sprintf(format, args...)} }

// question is a question to a model that a log has.
type question struct {
	context string
	tick    int
	hash    string // of the recorded request; empty if there is none
	seq     int64  // the context's message before it; 0 for the newest
	fresh   bool   // it was asked before there was any message: the context is to be a new one

	first bool     // it was for the first plan of a run
	calls []string // the calls that the request was about; empty for a plan
	// It was found by one of the calls, and not the first: that may have been asked about by itself
	// since.
	member bool
	script bool // a script asked, by itself
}

// name names the question for a person.
func (q *question) name() string {
	if len(q.calls) > 0 {
		return "call " + q.calls[0]
	}
	return "the plan of tick " + strconv.Itoa(q.tick)
}

// find returns the question about a call or a tick of a context; the latest one for an empty text.
func find(ctx context.Context, log store.Reader, name, call string) (*question, error) {
	in := journal.In(log, name)
	records, err := in.Records(ctx)
	if err != nil {
		return nil, err
	}
	plans, err := in.Plans(ctx, 1)
	if err != nil {
		return nil, err
	}
	var found *question
	var about *journal.Record // of the call; nil for a plan
	for _, p := range plans {
		if p.ByModel && (call == "" || call == strconv.Itoa(p.Tick)) {
			found = &question{context: name, tick: p.Tick, seq: p.Start, fresh: p.Start == 0, first: p.Tick == p.First}
			if p.Model != nil {
				found.hash = p.Model.Request
			}
		}
	}
	for i, r := range records {
		// What a script asked can't be computed, and is the latest only where nothing else was asked.
		later := r.Model != nil && (found == nil || r.Script == "" && r.Tick >= found.tick || r.Script != "" && found.script)
		if call == r.Call || call == "" && later {
			found, about = askedAbout(name, r, records), &records[i]
			// Calls of an earlier tick are run again where that tick had ended.
			if next := slices.IndexFunc(plans, func(p journal.PlanEvent) bool { return p.Tick > r.Tick }); next >= 0 {
				found.seq = plans[next].Start
			}
		}
	}
	if about != nil && about.Model != nil && about.Model.Context != "" && about.Model.Context != name {
		return findShared(ctx, log, found, about)
	}
	if found != nil {
		return found, nil
	}
	if call == "" {
		return nil, notFound("no model was asked in context %s", name)
	}
	var known []string
	for _, r := range records {
		known = append(known, r.Call)
	}
	near := spell.DidYouMean(call, known)
	if quoted := strconv.Quote(call); quoted != `"`+call+`"` {
		call = quoted
	}
	return nil, notFound("context %s has no call %s%s", name, call, cmp.Or(near, ": obelus calls lists them"))
}

// findShared returns a question as it was asked in the context with which a fork shares it: others
// of its calls may have run again in the fork. Without that record it is the one that was found.
func findShared(ctx context.Context, log store.Reader, found *question, r *journal.Record) (*question, error) {
	records, err := journal.In(log, r.Model.Context).Records(ctx)
	if err != nil {
		return nil, err
	}
	for _, other := range records {
		m := other.Model
		if other.Call == r.Call && m != nil && m.Context == r.Model.Context && m.Group == r.Model.Group && m.Request == r.Model.Request {
			return find(ctx, log, r.Model.Context, r.Call)
		}
	}
	return found, nil
}

// askedAbout returns the question about a call, and about the others that the same request
// answered.
func askedAbout(name string, r journal.Record, records []journal.Record) *question {
	q := &question{context: name, tick: r.Tick, script: r.Script != "" && r.Model != nil}
	if r.Model == nil {
		q.calls = []string{r.Call}
		return q
	}
	first := cmp.Or(r.Model.Group, r.Call)
	q.member = first != r.Call
	for _, other := range records {
		if other.Model == nil || cmp.Or(other.Model.Group, other.Call) != first || other.Model.Context != r.Model.Context {
			continue
		}
		q.calls = append(q.calls, other.Call)
		if other.Call == first {
			q.hash = other.Model.Request
		}
	}
	return q
}

// kept returns the exchanges that the log keeps of the newest asking of the question: its own, and
// those that repaired its answer.
func (q *question) kept(ctx context.Context, log store.Reader) ([]store.Exchange, error) {
	f := store.JournalFilter{Context: q.context, Newest: true, Event: journal.EventPlan}
	if len(q.calls) > 0 {
		f.Event, f.Call = "", q.calls[0]
	}
	for e, err := range log.Journal(ctx, f) {
		if err != nil {
			return nil, err
		}
		if len(q.calls) == 0 {
			event, err := journal.ReadPlanEvent(e)
			if err != nil {
				return nil, err
			}
			if event.Tick != q.tick {
				continue
			}
		}
		all, err := log.Exchanges(ctx, e.N)
		if err != nil || len(all) > 0 && (!q.member || all[0].Hash == q.hash) {
			return all, err
		}
	}
	return nil, nil
}

// ask runs a fork until it asks the question again. Calls that one request answered run again one
// after the other, each until it asks: those before it have no outcome then, and ask with it.
func (q *question) ask(ctx context.Context, c *capture, runner *engine.Runner, fork string, request *plan.Request) error {
	run := func(do func(ctx context.Context) error) error {
		within, end := c.begin(ctx)
		defer end()
		return do(within)
	}
	if q.first && request != nil {
		again := *request
		again.Context, again.Mode = nil, "" // its messages are there
		return run(func(ctx context.Context) error {
			_, err := runner.Run(ctx, engine.Start{Context: fork, Request: &again})
			return err
		})
	}
	from := q.calls
	if len(from) == 0 {
		from = []string{""}
	}
	var err error
	for _, call := range from {
		err = run(func(ctx context.Context) error {
			_, err := runner.Resume(ctx, engine.Resume{Context: fork, Request: request, From: call})
			return err
		})
		if c.captured() == nil {
			return err
		}
	}
	return err
}
