package engine

import (
	"context"
	"slices"

	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/store"
)

// read is a reference or a scope of a call, as the call finds it.
type read struct {
	path   store.Path
	exists bool
	seq    int64 // the newest that the value came from
}

// readsOf returns what a call reads, also what is missing: what its arguments, its _if, _at and _in
// reach, and its scopes.
func (t *tick) readsOf(ctx context.Context, i int) (all []read, err error) {
	call, seqs := t.plan.Calls[i], map[string]int64{}
	lookup := t.state.Lookup(i, &reading{values: &t.values, ctx: ctx}, seqs)
	err = call.Reach(ctx, func(path store.Path) (v any, exists, open bool, err error) {
		v, exists, open, err = lookup(path)
		all = append(all, read{path, exists, seqs[path.String()]})
		return v, exists, open, err
	})
	if err != nil {
		return nil, err
	}
	for _, scope := range call.ScopePaths {
		resolved, err := t.resolver(i).Resolve(ctx, scope, call.Instance)
		if err != nil {
			return nil, err
		}
		all = append(all, read{scope, resolved.Exists, journal.NewestSeq(resolved.From)})
	}
	return all, nil
}

// takeAnswer completes a latent call by the answer that a model gave with its plan, if that counts
// (protocol §5). Else the answer is set aside, and the record says why.
func (t *tick) takeAnswer(ctx context.Context, c *sched.Call) (taken bool, err error) {
	call := t.plan.Calls[c.Index()]
	if call.Answer == nil {
		return false, nil
	}
	c.Record.Answered, c.Record.SetAside = nil, nil
	if c.Record.At == 0 {
		c.Record.At = t.view.Seq()
	}
	aside, err := t.judgeAnswer(ctx, c)
	if err != nil {
		return false, err
	}
	if !aside.Counts() {
		c.Record.SetAside = aside
		return false, nil
	}
	c.Record.Answered = &journal.Answered{How: journal.WithPlan, Tick: t.event.Tick}
	if t.event.Model != nil {
		c.Record.Answered.Hash = t.event.Model.Request
	}
	res := &result{index: c.Index(), value: call.Answer.Result}
	if call.Answer.Failure != nil {
		res.err = call.Answer.Failure
	}
	return true, t.complete(ctx, res)
}

// judgeAnswer compares what a call reads with what the question for its plan showed. A recorded run
// has done so.
func (t *tick) judgeAnswer(ctx context.Context, c *sched.Call) (*journal.SetAside, error) {
	i, call := c.Index(), t.plan.Calls[c.Index()]
	aside := &journal.SetAside{Value: store.EncodeJSON(call.Answer.Given), Never: call.Answer.NeverCounts}
	if t.recorded != nil {
		if record := t.recorded.record(c.Record.Call); record.SetAside != nil {
			aside = record.SetAside
		}
		return aside, nil
	}
	if aside.Never != "" {
		return aside, nil
	}
	if h := c.Record.Hold; h != nil {
		aside.Newer = slices.Clone(h.Corrected)
	}
	reads, err := t.readsOf(ctx, i)
	if err != nil {
		return nil, err
	}
	for _, r := range reads {
		was := false
		if asked := t.event.Question.Seq; asked > 0 {
			then := t.view.Resolver()
			then.At = asked
			resolved, err := then.Resolve(ctx, r.path, call.Instance)
			if err != nil {
				return nil, err
			}
			was = resolved.Exists
		}
		switch isNewer := r.exists && r.seq > t.event.Question.Seq; {
		case r.exists && !was:
			note(&aside.Missing, r.path)
		case isNewer, was && !r.exists:
			note(&aside.Newer, r.path)
		case !t.event.Question.Showed(r.path):
			note(&aside.Cut, r.path)
		}
	}
	return aside, nil
}

// note adds a path to a list that lacks it.
func note(list *[]string, path store.Path) {
	if text := path.String(); !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}
