// Package proposal makes the question to a model that plans, from the log and the run's ticks so
// far.
package proposal

import (
	"bytes"
	"context"
	"fmt"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Source holds the parts that a question is made from.
type Source struct {
	Context journal.Context
	View    *store.View // of the context, staged messages included
	Request *plan.Request
	Tick    int                 // that is to be planned
	Plans   []journal.PlanEvent // of the run's ticks so far
}

// RepeatedError ends a run whose model makes no progress.
type RepeatedError struct{ First, Second int } // ticks

func (e *RepeatedError) Error() string {
	return fmt.Sprintf("the model repeats itself: ticks %d and %d have the same calls, and the second brought nothing new", e.First, e.Second)
}

// Build returns the question, without the tools on offer and the meter. Its error is a
// [*RepeatedError] where the model is not to be asked again.
func (s Source) Build(ctx context.Context) (plan.Proposal, error) {
	if repeats, err := s.repeats(ctx); err != nil {
		return plan.Proposal{}, err
	} else if repeats {
		return plan.Proposal{}, &RepeatedError{s.Tick - 2, s.Tick - 1}
	}
	p := plan.Proposal{
		Context: s.Context.Name, Tick: s.Tick, Key: fmt.Sprintf("%s/%d", s.Context.Name, s.Tick),
		Schema: s.Request.Schema, Outcomes: s.Request.Outcomes, Mode: s.Request.Mode,
	}
	if p.Mode == "" {
		p.Mode = plan.ModeEager
	}
	held, err := s.View.Kinds(ctx)
	if err != nil {
		return p, err
	}
	p.Instances = plan.Instances(held)[1:]
	messages, err := s.messages(ctx)
	if err != nil {
		return p, err
	}
	kinds, prose, err := plan.Audience{Scopes: s.Request.Scopes, Only: true}.Show(ctx, messages)
	if err != nil {
		return p, err
	}
	p.Prose = prose
	for _, k := range kinds {
		if k.Kind != store.KindError { // errors of the last tick are shown apart
			p.Kinds = append(p.Kinds, k)
		}
	}
	return p, s.addLastTick(ctx, &p, messages)
}

// addLastTick adds to a question the calls of the tick before, and its errors.
func (s Source) addLastTick(ctx context.Context, p *plan.Proposal, messages []*store.Message) error {
	if len(s.Plans) == 0 {
		return nil
	}
	last := s.Plans[len(s.Plans)-1]
	for _, m := range messages {
		if data, ok := m.Data.Value.(map[string]any); ok && m.Seq > last.Start && m.Kind == store.KindError {
			p.Errors = append(p.Errors, data)
		}
	}
	if last.Seq == 0 {
		var err error
		if last.Refused != nil {
			p.Refused, err = journal.DecodeJSON(last.Refused.Solution)
		}
		return err
	}
	calls, err := s.Context.PlanMessage(ctx, last.Seq)
	if err != nil {
		return err
	}
	records, err := s.Context.RecordsFrom(ctx, last.Tick, 0, 0)
	for i := range records {
		if r := &records[i]; r.Tick == last.Tick && r.Position <= len(calls) {
			p.Last = append(p.Last, lastCall(r, calls[r.Position-1]))
		}
	}
	return err
}

// lastCall describes a call of the tick before to a model.
func lastCall(r *journal.Record, issued any) plan.LastCall {
	last := plan.LastCall{Call: r.Call, Tool: r.Tool, Status: r.Outcome(), Wrote: r.Writes, Reason: r.Reason}
	last.Issued, _ = issued.(map[string]any)
	if r.SetAside != nil {
		last.SetAside = r.SetAside.String()
	}
	for _, fields := range []plan.Values{r.Handled, r.Error} {
		if message, ok := fields["message"].(string); ok {
			last.Reason = message
		}
	}
	return last
}

// Saw returns, for each kind that the model is shown, the seq of its newest message.
func (Source) Saw(kinds []plan.Shown) map[string]int64 {
	saw := map[string]int64{}
	for _, k := range kinds {
		path := store.KindPath(k.Kind).String()
		saw[path] = max(saw[path], k.Seq)
	}
	return saw
}

// messages returns the messages that count in the context, staged ones included.
func (s Source) messages(ctx context.Context) (all []*store.Message, err error) {
	if s.View.Committed() > 0 {
		for m, err := range s.Context.Log.Messages(ctx, store.Filter{Context: s.Context.Name, At: s.View.Committed()}) {
			if err != nil {
				return nil, err
			}
			if !s.View.Hides(m.Seq) {
				all = append(all, m)
			}
		}
	}
	staged := s.View.Staged()
	for i := range staged {
		all = append(all, &staged[i])
	}
	return all, nil
}

// repeats reports whether the last two ticks had the same calls, and the second brought nothing
// new: every kind except the errors is as it was before.
func (s Source) repeats(ctx context.Context) (bool, error) {
	if len(s.Plans) < 2 {
		return false, nil
	}
	var texts [2][]byte
	last := s.Plans[len(s.Plans)-2:]
	for i, event := range last {
		if event.Seq == 0 || event.Calls != last[0].Calls { // the first was refused
			return false, nil
		}
		calls, err := s.Context.PlanMessage(ctx, event.Seq)
		if err != nil {
			return false, err
		}
		texts[i] = store.EncodeJSON(calls)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		return false, nil
	}
	return s.unchangedSince(ctx, last[1].Start)
}

// unchangedSince reports whether the values of all kinds except the errors are as they were at a
// seq.
func (s Source) unchangedSince(ctx context.Context, seq int64) (bool, error) {
	held, err := s.View.Kinds(ctx)
	if err != nil || seq == 0 {
		return false, err
	}
	now, then := s.View.Resolver(), s.View.Resolver()
	then.At = seq
	for _, k := range held {
		if k.Kind == store.KindError {
			continue
		}
		after, err := now.Resolve(ctx, store.KindPath(k.Kind), k.Instance)
		if err != nil {
			return false, err
		}
		before, err := then.Resolve(ctx, store.KindPath(k.Kind), k.Instance)
		if err != nil {
			return false, err
		}
		if after.Exists != before.Exists || !bytes.Equal(store.EncodeJSON(after.Value), store.EncodeJSON(before.Value)) {
			return false, nil
		}
	}
	return true, nil
}

// Visible is the part of a context that a model sees when it is asked about a call of a plan: the
// log as the tick began, later messages of the calls that it depends on, and those with what its
// scopes grant.
type Visible struct {
	Plan    *plan.Plan
	Tick    journal.PlanEvent
	View    *store.View
	Call    int
	Granted map[int64]bool // seqs of messages that the values of scopes came from
}

// Messages returns the messages, the oldest first.
func (v Visible) Messages(ctx context.Context, in journal.Context) (seen []*store.Message, err error) {
	wrote := map[string]bool{}
	for k := range v.Plan.Graph.Ancestors(v.Call) {
		wrote[journal.CallID(v.Tick.Tick, v.Plan.Calls[k].Position)] = true
	}
	for m, err := range in.Log.Messages(ctx, store.Filter{Context: in.Name}) {
		if err != nil {
			return nil, err
		}
		isSeen := m.Seq <= v.Tick.Start || wrote[m.Call] || v.Granted[m.Seq]
		if isSeen && !v.View.Hides(m.Seq) {
			seen = append(seen, m)
		}
	}
	return seen, nil
}
