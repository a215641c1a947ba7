package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"obelus/engine/internal/logerr"
	"obelus/engine/internal/proposal"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// task is a call that a worker is to run.
type task struct {
	tick *tickRun
	start
	others []start // the rest of its group, see [plan.Plan.Group]
}

// do does the call.
func (j *task) do() result {
	t, working := j.tick, j.tick.loop.working
	if j.child != nil {
		return j.runDelegate(working)
	}
	pool := t.runner.pool
	defer pool.Release(j.slot)
	if j.invocation.Question != nil {
		if err := j.readMessages(working); err != nil {
			return result{index: j.index, err: unreadLog(working, err)}
		}
	}
	ok := j.slot.Wait(working)
	switch {
	case t.loop.isInterrupted(), pool.IsOver():
		// It got a slot while the run drained, or a slot that another delegate gave up before this
		// call was notified: a run is over before the runs inside it.
		return result{index: j.index, err: errUnbegun}
	case !ok || working.Err() != nil:
		return result{index: j.index, err: errCut}
	}
	if t.runner.Acquire == nil {
		return j.execute(working)
	}
	return j.executeAcquired()
}

// execute runs the call, before the log has its start where that is allowed.
func (j *task) execute(working context.Context) result {
	switch {
	case j.speculative != nil:
		return j.speculate(working)
	case j.invocation.Question != nil:
		return j.askModel(working)
	case j.tick.runner.account != nil:
		return j.runWithModels(working)
	}
	return j.attempt(working, 0, j.activity.Activity.Run)
}

// runWithModels runs a call that may ask models itself. What they used is the call's.
func (j *task) runWithModels(working context.Context) result {
	t := j.tick
	meter := t.runner.meter(t.context, journal.CallID(t.event.Tick, t.plan.Calls[j.index].Position))
	j.invocation.Models = &plan.Models{Registry: t.runner.Registry, Meter: meter}
	res := j.attempt(working, 0, j.activity.Activity.Run)
	res.usage = meter.Used()
	return res
}

// executeAcquired runs the call once its resources are acquired.
func (j *task) executeAcquired() (res result) {
	release, ok := j.tick.runner.Acquire(j.tick.loop.interrupt)
	if !ok {
		return result{index: j.index, err: errUnbegun}
	}
	defer func() {
		if res.release == nil { // it begins anew, or broke down
			release()
		}
	}()
	res = j.execute(j.tick.loop.working)
	if res.unstarted == nil {
		res.release = release
	}
	return res
}

// errUnbegun is the error of a call that a run left where it was when it was stopped.
var errUnbegun = errors.New("it had not begun when the run was stopped")

// unreadLog is the error of a call for which the log could not be read: it is cut off where its run
// has ended.
func unreadLog(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errCut
	}
	return logerr.Wrap(err)
}

// attempts returns the bounds on the attempts of the call.
func (j *task) attempts() plan.Attempts {
	return j.activity.AttemptsOf(j.tick.plan.Calls[j.index])
}

// attempt runs the call. After a failure that is to be retried it returns the call for the pause,
// with its slot; a fire-and-forget call, which may outlive its tick, keeps both. See [runAttempt]
// for within.
func (j *task) attempt(ctx context.Context, within time.Duration, do plan.ActivityFunc) result {
	res, bounds := result{index: j.index}, j.attempts()
	for {
		res.attempts++
		j.invocation.Attempt++
		res.value, res.err = runAttempt(ctx, j.doer, bounds.Timeout, within, do, j.invocation)
		if !isRetried(bounds, j.activity.NotIdempotent, j.invocation.Attempt, res.err) {
			return res
		}
		pause := backoff(bounds, j.invocation.Attempt, j.tick.runner.jitter)
		if !j.tick.plan.Calls[j.index].FireAndForget() {
			res.retry = &retry{start: j.start, after: pause}
			return res
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return result{index: j.index, err: errCut, attempts: res.attempts}
		}
	}
}

// speculate runs the call for as long as it has no visible effect. A call that goes on after
// that begins anew, once the log has its start; one that had ended by then, though it had to wait
// for a processor, keeps its outcome.
func (j *task) speculate(ctx context.Context) result {
	var ran, late bool
	before := j.invocation.Attempt
	res := j.attempt(ctx, speculateFor, func(ctx context.Context, in plan.Invocation) (res plan.Result, err error) {
		if res, ran, err = j.speculative.Speculate(ctx, in); !ran || err != nil {
			until, _ := ctx.Deadline()
			late = ctx.Err() != nil || !time.Now().Before(until)
			ran = ran && !late
		}
		return res, err
	})
	ran = ran && res.err != errCut
	j.activity.NoteSpeculation(ran, late)
	if !ran {
		again := j.start
		again.invocation.Attempt = before
		return result{index: j.index, unstarted: &again}
	}
	res.pure, res.value.Pure = true, res.err == nil
	return res
}

// question prepares the question to a model about call i. Its messages are read when it is asked.
func (vs *values) question(i int, in plan.Invocation) *plan.Question {
	call := vs.plan.Calls[i]
	q := &plan.Question{
		Call: call.ForModel(in.Call), Tool: in.Tool, Schema: call.Definition.Result, Schemas: vs.schemas, Key: in.Key,
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
func joinTask(tasks []task, s start, group []int) bool {
	i := slices.IndexFunc(tasks, func(j task) bool { return slices.Contains(group, j.index) })
	if i < 0 || s.invocation.Question == nil {
		return false
	}
	tasks[i].others = append(tasks[i].others, s)
	return true
}

// members are the starts of the task: one, unless a request answers several calls.
func (j *task) members() []start { return append([]start{j.start}, j.others...) }

// askModel asks the model about the calls of the task. The result of the first has those of the
// others, and all of the usage.
func (j *task) askModel(ctx context.Context) result {
	meter := j.tick.runner.meter(j.tick.context, j.invocation.Question.ID)
	var questions []plan.Question
	for _, m := range j.members() {
		m.invocation.Question.Meter = meter
		questions = append(questions, *m.invocation.Question)
	}
	var replies []plan.Reply
	do := j.activity.Activity.Run
	if batcher, ok := j.tick.plan.Calls[j.index].Model.(plan.Batcher); ok {
		do = func(ctx context.Context, _ plan.Invocation) (_ plan.Result, err error) {
			if replies, err = plan.AnswerAll(ctx, batcher, questions); err != nil {
				return plan.Result{}, err
			}
			return replies[0].Result, replies[0].Err
		}
	}
	first := j.attempt(ctx, 0, do)
	first.usage = meter.Used()
	if replies != nil {
		first.value, first.err = j.replyTo(ctx, replies[0], first.err)
		first.reply = &replies[0]
	}
	for n, m := range j.others {
		res := &result{tick: j.tick, index: m.index, step: m.step, attempts: first.attempts, err: first.err}
		if replies != nil {
			res.value, res.err = j.replyTo(ctx, replies[n+1], first.err)
			res.reply = &replies[n+1]
		}
		if first.usage != nil {
			res.usage = &plan.Usage{Model: first.usage.Model, Group: questions[0].ID, Request: first.usage.Request}
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

// resultsOfOthers gives the other calls of a group the error of the first, where nothing was asked.
func (j *task) resultsOfOthers(first *result) {
	if len(first.others) > 0 {
		return
	}
	for _, m := range j.others {
		first.others = append(first.others, &result{tick: j.tick, index: m.index, step: m.step, err: first.err})
	}
}

// meter returns the meter of a call, or of the plan of a tick.
func (r *Runner) meter(context, call string) *plan.Meter {
	if r.Watch == nil {
		return plan.NewMeter(r.account, nil)
	}
	return plan.NewMeter(r.account, func(text string) { r.Watch(context, call, text) })
}

// noteUsage adds the usage of a model for a call to the call's record.
func (t *tick) noteUsage(res *result) {
	if res.usage == nil {
		if res.attempts > 0 && t.state.Calls[res.index].Record.Model != nil { // the attempt has sent nothing
			r := &t.state.Change(res.index).Record
			r.Model = r.Model.Earlier()
		}
		return
	}
	r := &t.state.Change(res.index).Record
	used := *res.usage
	used.Context = t.context
	r.Model = r.Model.Within(t.context).And(used)
}

// readMessages fills in the messages that the model sees, for each call of the task. Those of an
// instance are the same: the calls wait for the same calls, and each sees what scopes grant to any.
func (j *task) readMessages(ctx context.Context) (err error) {
	in := journal.In(j.tick.runner.Log, j.tick.context)
	granted := map[string]map[int64]bool{} // by instance
	for _, m := range j.members() {
		instance := j.tick.plan.Calls[m.index].Instance
		if granted[instance] == nil {
			granted[instance] = map[int64]bool{}
		}
		for _, seq := range m.granted {
			granted[instance][seq] = true
		}
	}
	seen := map[string][]*store.Message{}
	for _, m := range j.members() {
		call, q := j.tick.plan.Calls[m.index], m.invocation.Question
		messages, ok := seen[call.Instance]
		if !ok {
			visible := proposal.Visible{Plan: j.tick.plan, Tick: j.tick.event, View: j.tick.view, Call: m.index, Granted: granted[call.Instance]}
			if messages, err = visible.Messages(ctx, in); err != nil {
				return err
			}
			seen[call.Instance] = messages
		}
		scopes := call.ScopePaths
		if call.SeesScopesAlone() {
			messages, q.Thoughts = plan.InFocus(messages, scopes), nil
			if scopes == nil {
				scopes = []store.Path{}
			}
		}
		q.Messages = plan.ModelView(messages, scopes, call.Instance)
		audience := plan.Audience{Instance: call.Instance, Scopes: scopes, Only: call.SeesScopesAlone()}
		if q.Kinds, q.Prose, err = audience.Show(ctx, messages); err != nil {
			return err
		}
	}
	return nil
}
