package prompts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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

	first  bool     // it was for the first plan of a run
	calls  []string // the calls that the request was about; empty for a plan
	keeper string   // the call whose entry has the request's usage; empty for a plan, or if there is none
	script bool     // a script asked, by itself
	// The record of the call that the question is about, where it has not settled; nil for others.
	open *journal.Record
}

// name names the question for a person.
func (q *question) name() string {
	if len(q.calls) > 0 {
		return "call " + q.calls[0]
	}
	return "the plan of tick " + strconv.Itoa(q.tick)
}

// waits says why the call has not been made yet, if it waits; empty for one that does not.
func (q *question) waits() string {
	if q.open == nil || q.open.Rests || q.open.Status != journal.Waiting && q.open.Status != journal.Blocked {
		return ""
	}
	if due, ok := q.open.WaitsUntil(); ok {
		return "waits until " + due.Format(time.RFC3339)
	}
	if len(q.open.WaitingOn) == 0 {
		return "waits for other calls"
	}
	return "waits for " + strings.Join(q.open.WaitingOn, ", ")
}

// find returns the question about a call or a tick of a context; the latest one for an empty text.
func find(ctx context.Context, log store.Reader, name, call string) (*question, error) {
	in := journal.In(log, name)
	records, err := in.CurrentRecords(ctx)
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
		// A script's own question can't be computed: it counts as the latest only if there is no other.
		later := r.Model != nil && (found == nil || r.Script == "" && r.Tick >= found.tick || r.Script != "" && found.script)
		if call == r.Call || call == "" && later {
			found, about = askedAbout(name, r, records), &records[i]
			if !r.Status.Settled() {
				found.open = about
			}
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
		return found, found.addGroup(ctx, log)
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
	return found, found.addGroup(ctx, log)
}

// askedAbout returns the question about a call.
func askedAbout(name string, r journal.Record, records []journal.Record) *question {
	q := &question{context: name, tick: r.Tick, calls: []string{r.Call}, script: r.Script != "" && r.Model != nil}
	if r.Model == nil {
		return q
	}
	q.keeper, q.hash = cmp.Or(r.Model.Group, r.Call), r.Model.Request
	if i := slices.IndexFunc(records, func(other journal.Record) bool { return other.Call == q.keeper && other.Model != nil }); i >= 0 && q.hash == "" {
		q.hash = records[i].Model.Request // logs may lack it for the others of a group
	}
	return q
}

// addGroup adds the other calls that the question's request answered, in their order, whatever has
// become of them since.
func (q *question) addGroup(ctx context.Context, log store.Reader) error {
	if q.hash == "" || q.keeper == "" {
		return nil
	}
	position := map[string]int{}
	for e, err := range log.Journal(ctx, store.JournalFilter{Context: q.context}) {
		if err != nil {
			return err
		}
		if e.Call == "" {
			continue
		}
		r, err := journal.ReadRecord(e)
		if err != nil {
			return err
		}
		if m := r.Model; m != nil && cmp.Or(m.Group, r.Call) == q.keeper && (m.Request == q.hash || m.Request == "" && m.Group != "") {
			position[r.Call] = r.Position
		}
	}
	q.calls = slices.SortedFunc(maps.Keys(position), func(a, b string) int { return position[a] - position[b] })
	return nil
}

// kept returns the exchanges that the log keeps of the question's request, its own and those that
// repaired its answer; none where the newest such request was not kept.
func (q *question) kept(ctx context.Context, log store.Reader) ([]store.Exchange, error) {
	if q.hash == "" {
		return nil, nil
	}
	at, err := q.entry(ctx, log)
	if at == 0 || err != nil {
		return nil, err
	}
	kept, err := log.Exchanges(ctx, at)
	if err != nil || len(kept) == 0 || kept[0].Hash != q.hash {
		return nil, err
	}
	return kept, nil
}

// entry returns the position of the journal entry that the usage of the question's request came
// with; 0 for none. Later entries of a call may have that usage too.
func (q *question) entry(ctx context.Context, log store.Reader) (at int64, err error) {
	f := store.JournalFilter{Context: q.context, Newest: true, Event: journal.EventPlan}
	if q.keeper != "" {
		f.Event, f.Call = "", q.keeper
	}
	usage := "" // of the request, and those before it
	for e, err := range log.Journal(ctx, f) {
		if err != nil {
			return 0, err
		}
		model, tick, err := usageOf(e)
		switch {
		case err != nil:
			return 0, err
		case q.keeper == "" && tick != q.tick:
		case q.keeper == "":
			return e.N, nil
		case usage != "" && string(store.EncodeJSON(model)) != usage:
			return at, nil
		case usage != "":
			at = e.N
		case model != nil && model.Request == q.hash:
			at, usage = e.N, string(store.EncodeJSON(model))
		}
	}
	return at, nil
}

// usageOf returns the usage that a journal entry of a call or of a plan has, which may be nil, and
// the tick.
func usageOf(e store.Entry) (*plan.Usage, int, error) {
	if e.Event == journal.EventPlan {
		event, err := journal.ReadPlanEvent(e)
		return event.Model, event.Tick, err
	}
	r, err := journal.ReadRecord(e)
	return r.Model, r.Tick, err
}

// ask runs a fork until it asks the question again. Calls that one request answered run again one
// after the other, each until it asks: those before it have no outcome then, and ask with it.
func (q *question) ask(ctx context.Context, c *capture, runner *engine.Runner, fork string, request *plan.Request) error {
	run := func(call string, do func(ctx context.Context) error) error {
		within, end := c.begin(ctx, subject{fork, call})
		defer end()
		return do(within)
	}
	if q.first {
		var err error
		if runner, request, err = runner.Within(ctx, q.context, request); err != nil {
			return err
		}
	}
	if q.first && request != nil {
		again := *request
		again.Context, again.Mode = nil, "" // its messages are there
		return run("", func(ctx context.Context) error {
			_, err := runner.Run(ctx, engine.Start{Context: fork, Request: &again})
			return err
		})
	}
	if q.open != nil {
		return run(q.open.Call, func(ctx context.Context) error { return q.askOpen(ctx, runner, fork, request) })
	}
	from := q.calls
	if len(from) == 0 {
		from = []string{""}
	}
	var err error
	for _, call := range from {
		err = run(call, func(ctx context.Context) error {
			_, err := runner.Resume(ctx, engine.Resume{Context: fork, Request: request, From: call})
			return err
		})
		if c.captured() == nil {
			return err
		}
	}
	return err
}

// askOpen resumes a fork in which the question's call has not settled: that makes the call.
func (q *question) askOpen(ctx context.Context, runner *engine.Runner, fork string, request *plan.Request) error {
	if q.open.Status == journal.Held {
		if err := runner.Decide(ctx, journal.Decision{Context: fork, Call: q.open.Call}); err != nil {
			return err
		}
	}
	if next, err := time.Parse(time.RFC3339, q.open.RetryAt); err == nil && next.After(time.Now()) {
		runner.Now = func() time.Time { return next } // its next attempt is due
	}
	_, err := runner.Resume(ctx, engine.Resume{Context: fork, Request: request})
	return err
}
