package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// readsOf returns what a call reads, also what is missing: what its arguments, its _if, _at and _in
// reach, and its scopes. A path is true if there is a value that the call takes.
func (t *tick) readsOf(ctx context.Context, i int) (map[store.Path]bool, error) {
	call, all := t.plan.Calls[i], map[store.Path]bool{}
	lookup := t.state.Lookup(i, &evaluating{values: &t.values, ctx: ctx}, map[string]int64{})
	err := call.Reach(ctx, func(path store.Path) (v any, exists, open bool, err error) {
		v, exists, open, err = lookup(path)
		all[path] = exists
		return v, exists, open, err
	})
	for _, scope := range call.ScopePaths {
		if err == nil {
			var resolved store.Resolved
			resolved, err = t.resolver(i).Resolve(ctx, scope, call.Instance)
			all[scope] = resolved.Exists
		}
	}
	return all, err
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
		if !call.AsksModel && !call.IsThought() { // of an older plan, whose model is gone
			err := plan.Faultf(plan.CodeUnknownTool, "%s, and there is no model to ask: set one", aside)
			return true, t.complete(ctx, &result{index: c.Index(), err: err})
		}
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

// judgeAnswer compares what a call reads with what the question for its plan showed.
func (t *tick) judgeAnswer(ctx context.Context, c *sched.Call) (*journal.SetAside, error) {
	i, call := c.Index(), t.plan.Calls[c.Index()]
	aside := &journal.SetAside{Value: store.EncodeJSON(call.Answer.Given), Never: call.Answer.NeverCounts}
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
	for _, path := range slices.SortedFunc(maps.Keys(reads), func(a, b store.Path) int { return strings.Compare(a.String(), b.String()) }) {
		var then, now store.Resolved
		if asked := t.event.Question.Seq; asked > 0 {
			resolver := t.view.Resolver()
			resolver.At = asked
			if then, err = resolver.Resolve(ctx, path, call.Instance); err != nil {
				return nil, err
			}
		}
		if reads[path] {
			if now, err = t.resolver(i).Resolve(ctx, path, call.Instance); err != nil {
				return nil, err
			}
		}
		isSame := now.Exists && slices.Equal(then.From, now.From) && jsonvalue.Equal(then.Value, now.Value)
		list := &aside.Cut
		switch {
		case !then.Exists && now.Exists:
			list = &aside.Missing
		case then.Exists && !isSame:
			list = &aside.Newer
		case t.event.Question.Showed(path):
			continue
		}
		*list = append(*list, path.String())
	}
	if err := call.CheckAnswer(); err != nil && aside.Counts() {
		aside.Never = err.Error()
	}
	return aside, nil
}
