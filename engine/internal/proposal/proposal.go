// Package proposal makes the question to a model that plans, from the log and the run's ticks so
// far.
package proposal

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// Build returns the question, without the tools on offer and the meter. Its error is a
// [*RepeatedError] where the model is not to be asked again.
func (s Source) Build(ctx context.Context) (plan.Proposal, error) {
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
	p.Plan = s.standingPlan(messages)
	if len(s.Plans) == 0 {
		return p, nil
	}
	ticks, err := s.ticks(ctx, messages)
	if err != nil {
		return p, err
	}
	s.addTicks(&p, ticks)
	p.Repeats, err = s.repetition(ctx, ticks, messages)
	return p, err
}

// standingPlan returns the calls of the newest plan in the context that is none of the run's own;
// nil for none.
func (s Source) standingPlan(messages []*store.Message) any {
	for _, m := range slices.Backward(messages) {
		isOwn := slices.ContainsFunc(s.Plans, func(event journal.PlanEvent) bool { return event.Seq == m.Seq || event.MessageSeq() == m.Seq })
		if m.Type == store.TypePlan && !isOwn {
			return m.Data.Value
		}
	}
	return nil
}

// tick is a tick of the run so far.
type tick struct {
	journal.PlanEvent
	end       int64 // the newest seq at its end
	calls     []any
	errors    []map[string]any // data of its error messages
	past      []plan.PastCall
	signature []byte // two ticks share it if they had the same calls and output, which ended alike
}

// ticks returns the run's ticks so far.
func (s Source) ticks(ctx context.Context, messages []*store.Message) ([]tick, error) {
	records, err := s.Context.RecordsFrom(ctx, s.Plans[0].Tick, 0, nil)
	if err != nil {
		return nil, err
	}
	all := make([]tick, len(s.Plans))
	for i, event := range s.Plans {
		t := &all[i]
		t.PlanEvent, t.end = event, s.View.Seq()
		if i+1 < len(s.Plans) {
			t.end = s.Plans[i+1].Start
		}
		if event.Seq == 0 {
			continue
		}
		if t.calls, err = s.Context.PlanMessage(ctx, event.MessageSeq()); err != nil {
			return nil, err
		}
		if event.IsRejected() { // it is shown as a plan that was refused
			output, _ := journal.DecodeJSON(event.Output)
			t.Refused = &journal.Refusal{Digest: event.Decision.Hash, Solution: store.EncodeJSON(map[string]any{"calls": t.calls, "output": output})}
		}
	}
	wrote := map[string]any{} // values, by the call that wrote them
	for _, m := range messages {
		if m.Kind != store.KindError {
			if m.Type == store.TypeData {
				wrote[m.Call] = m.Data.Value
			}
			continue
		}
		at := slices.IndexFunc(all, func(t tick) bool { return m.Seq > t.Start && m.Seq <= t.end })
		if data, ok := m.Data.Value.(map[string]any); ok && at >= 0 {
			all[at].errors = append(all[at].errors, data)
		}
	}
	for i := range records {
		r := &records[i]
		at := slices.IndexFunc(all, func(t tick) bool { return t.Tick == r.Tick })
		if at >= 0 && r.Position <= len(all[at].calls) {
			past := pastCall(r, all[at].calls[r.Position-1])
			if value, ok := s.writtenValue(wrote[r.Call], r.Writes); ok {
				past.Value = store.Some(value)
			}
			all[at].past = append(all[at].past, past)
		}
	}
	for i := range all {
		all[i].sign()
	}
	return all, nil
}

// writtenValue returns the value that a message has at the first of the paths that its call wrote,
// if the model may see it.
func (s Source) writtenValue(data any, paths []string) (value any, ok bool) {
	if len(paths) == 0 {
		return nil, false
	}
	path, err := store.ParsePath(paths[0])
	grants := func(scope store.Path) bool { return scope.Contains(path) }
	if err != nil || s.Request.Scopes != nil && !slices.ContainsFunc(s.Request.Scopes, grants) {
		return nil, false
	}
	return store.Dig(data, path)
}

// addTicks adds to a question what has happened so far, and what is wrong with the newest plan.
func (s Source) addTicks(p *plan.Proposal, ticks []tick) {
	for i, t := range ticks {
		p.SoFar = append(p.SoFar, t.past...)
		past := plan.PastCall{Call: strconv.Itoa(t.Tick), Tick: t.Tick, Status: "refused", Reason: t.problem()}
		if past.Reason == "" {
			continue
		}
		isNewest := i == len(ticks)-1
		if isNewest { // the errors of the tick say it
			past.Reason = ""
		}
		switch {
		case t.Refused != nil && !isNewest: // else the plan is shown whole
			past.Tool = "the plan"
		case t.Refused == nil && t.Output != nil:
			output, _ := journal.DecodeJSON(t.Output)
			past.Tool, past.Issued = "the output", map[string]any{"output": output}
		default:
			continue
		}
		p.SoFar = append(p.SoFar, past)
	}
	last := ticks[len(ticks)-1]
	p.Errors, p.Warnings = last.errors, last.Warnings
	if last.Refused != nil {
		p.Refused, _ = journal.DecodeJSON(last.Refused.Solution)
	}
}

// problem joins what was wrong with the plan that was refused, or with its output; empty for
// nothing.
func (t *tick) problem() string {
	var texts []string
	for _, data := range t.errors {
		failure, _ := data["error"].(map[string]any)
		if message, ok := failure["message"].(string); ok && (t.Refused != nil || data["call"] == nil) {
			texts = append(texts, message)
		}
	}
	return strings.Join(texts, "; ")
}

// pastCall describes a call of an earlier tick to a model.
func pastCall(r *journal.Record, issued any) plan.PastCall {
	past := plan.PastCall{Call: r.Call, Tick: r.Tick, Tool: r.Tool, Status: r.Outcome(), Wrote: r.Writes, Reason: r.Reason}
	past.Issued, _ = issued.(map[string]any)
	if output, ok := r.Thought["output"]; ok {
		past.Value = store.Some(output)
	}
	if r.SetAside != nil {
		past.SetAside = r.SetAside.String()
	}
	for _, fields := range []plan.Values{r.Handled, r.Error} {
		if message, ok := fields["message"].(string); ok {
			past.Reason = message
		}
	}
	return past
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
