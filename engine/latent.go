package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"obelus/engine/internal/crash"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// question prepares the question to a model about call i. Its messages are read when it is asked.
func (vs *values) question(i int, in plan.Invocation) *plan.Question {
	call := vs.plan.Calls[i]
	q := &plan.Question{
		Call: call.ForModel(in.Call), Tool: in.Tool, Schema: call.Definition.Result, Key: in.Key,
		ID: vs.state.Calls[i].Record.Call, Alternatives: call.Alternatives(), Scopes: call.ScopePaths,
	}
	for k := range vs.state.Calls[:i] {
		r := &vs.state.Calls[k].Record
		if r.Thought != nil && r.Status == journal.Done && plan.VisibleToModel(r.Instance, call.Instance) {
			q.Thoughts = append(q.Thoughts, r.Thought)
		}
	}
	return q
}

// joinTask adds a start to the task of its group, if that is among some tasks.
func (t *tickRun) joinTask(tasks []task, s start) bool {
	group := t.plan.Group(s.index)
	i := slices.IndexFunc(tasks, func(j task) bool { return slices.Contains(group, j.index) })
	if i < 0 || s.invocation.Question == nil {
		return false
	}
	tasks[i].others = append(tasks[i].others, s)
	return true
}

// members are the starts of the task: one, unless a request answers several calls.
func (j *task) members() []start { return append([]start{j.start}, j.others...) }

// askModel asks the model about the calls of the task. The results of the others come with that of
// the first. What the model used is the first one's.
func (j *task) askModel(ctx context.Context) result {
	meter := plan.NewMeter(j.tick.runner.account, j.tick.runner.watchModel(j.tick.context, j.invocation.Question.ID))
	var questions []plan.Question
	for _, m := range j.members() {
		m.invocation.Question.Meter = meter
		questions = append(questions, *m.invocation.Question)
	}
	var replies []plan.Reply
	do := j.activity.Activity.Run
	if batcher, ok := j.tick.plan.Calls[j.index].Model.(plan.Batcher); ok {
		do = func(ctx context.Context, _ plan.Invocation) (_ plan.Result, err error) {
			if replies, err = answerAll(ctx, batcher, questions); err != nil {
				return plan.Result{}, err
			}
			return replies[0].Result, replies[0].Err
		}
	}
	first := j.attempt(ctx, 0, do)
	first.usage = meter.Used()
	for n, m := range j.others {
		res := &result{tick: j.tick, index: m.index, step: m.step, attempts: first.attempts, err: first.err}
		if replies != nil {
			res.value, res.err = j.replyTo(ctx, replies[n+1], first.err)
		}
		if first.usage != nil {
			res.usage = &plan.Usage{Model: first.usage.Model, Group: questions[0].ID}
		}
		first.others = append(first.others, res)
	}
	return first
}

// replyTo returns the result of another call of the group. It was cut off, or timed out, where it
// has none and the first one's error says so.
func (j *task) replyTo(ctx context.Context, reply plan.Reply, first error) (plan.Result, error) {
	failure, _ := errors.AsType[*plan.Failure](first)
	switch {
	case reply.Err != nil && ctx.Err() != nil:
		return plan.Result{}, errCut
	case reply.Err != nil && failure != nil && failure.Fields["code"] == "timeout":
		return plan.Result{}, first
	}
	return plan.NormalizeResult(j.doer, reply.Result, reply.Err)
}

// answerAll asks a model several questions at once. Its error is about all of them.
func answerAll(ctx context.Context, model plan.Batcher, questions []plan.Question) (replies []plan.Reply, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = crash.PanicError("the model broke down", panicked)
		}
	}()
	replies = model.AnswerAll(ctx, questions)
	if len(replies) != len(questions) {
		return nil, fmt.Errorf("the model gave %d answers to %d questions", len(replies), len(questions))
	}
	return replies, nil
}

// resultsOfOthers gives the other calls of a group the error of the first, where nothing was asked.
func (j *task) resultsOfOthers(first *result) {
	if len(first.others) > 0 {
		return
	}
	for _, m := range j.others {
		first.others = append(first.others, &result{tick: j.tick, index: m.index, step: m.step, err: first.err})
	}
}

// watchModel returns a function that hands on what a model is writing; nil if nothing watches.
func (r *Runner) watchModel(context, call string) func(text string) {
	if r.Watch == nil {
		return nil
	}
	return func(text string) { r.Watch(context, call, text) }
}

// noteUsage adds what a model used for a call to the call's record.
func (t *tick) noteUsage(res *result) {
	if res.usage == nil {
		return
	}
	r := &t.state.Change(res.index).Record
	used := *res.usage
	if r.Model != nil {
		before := *r.Model
		before.Add(used)
		before.Group = used.Group
		used = before
	}
	r.Model = &used
}

// readMessages fills in the messages that the model sees, for each call of the task.
func (j *task) readMessages(ctx context.Context) error {
	t := j.tick
	seen := map[string][]*store.Message{} // by instance: the calls of a group wait for the same calls
	for _, m := range j.members() {
		call, q := t.plan.Calls[m.index], m.invocation.Question
		messages, ok := seen[call.Instance]
		if !ok {
			var err error
			if messages, err = t.messagesFor(ctx, m.index); err != nil {
				return err
			}
			seen[call.Instance] = messages
		}
		q.Messages = plan.ModelView(messages, call.ScopePaths, call.Instance)
		var err error
		if q.Kinds, q.Prose, err = (plan.Audience{Instance: call.Instance, Scopes: call.ScopePaths}).Show(ctx, messages); err != nil {
			return err
		}
	}
	return nil
}

// messagesFor returns the messages of the log as the tick began, and those since of the calls that
// call i depends on.
func (t *tickRun) messagesFor(ctx context.Context, i int) (seen []*store.Message, err error) {
	wrote := map[string]bool{}
	for k := range t.plan.Graph.Ancestors(i) {
		wrote[journal.CallID(t.event.Tick, t.plan.Calls[k].Position)] = true
	}
	for m, err := range t.runner.Log.Messages(ctx, store.Filter{Context: t.context}) {
		if err != nil {
			return nil, err
		}
		if !t.view.Hides(m.Seq) && (m.Seq <= t.event.Start || wrote[m.Call]) {
			seen = append(seen, m)
		}
	}
	return seen, nil
}
