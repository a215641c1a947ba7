package engine

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// advance starts the calls that can start, and settles at once those that need no worker: skipped
// and rejected calls, and those that bring their own result.
func (t *tick) advance(ctx context.Context) error {
	for {
		queue := t.nextQueue()
		if queue == nil || t.awaitsRecorded((*queue)[0]) {
			return nil
		}
		if err := t.evaluateNext(ctx, heap.Pop(queue).(queuedCall).index); err != nil {
			return err
		}
	}
}

// nextQueue returns the queue whose first call is next, nil if none may run. Fire-and-forget calls
// come last, except in a recorded run, where the record gives the order.
func (t *tick) nextQueue() *callQueue {
	parallel := t.runner.parallel()
	run, loose := len(t.readyQueue) > 0 && t.running < parallel, len(t.looseQueue) > 0 && t.detached < parallel
	switch {
	case loose && (!run || t.looseQueue[0].rank.Before(t.readyQueue[0].rank)):
		return &t.looseQueue
	case run:
		return &t.readyQueue
	}
	return nil
}

// evaluateNext evaluates a call whose turn has come, unless its activity is at its limit; a
// recorded run has no limit.
func (t *tick) evaluateNext(ctx context.Context, i int) error {
	if a := t.plan.Calls[i].Activity; !t.runner.script.Recorded() && a != nil && a.Concurrency > 0 && t.busy[a] >= a.Concurrency {
		t.parked[a] = append(t.parked[a], i)
		return nil
	}
	if err := t.evaluate(ctx, i); err != nil {
		return err
	}
	if a := t.plan.Calls[i].Activity; a != nil {
		t.unpark(a) // it may not have taken the place
	}
	return nil
}

// unpark lets a call have its turn that waits for its activity, if there is a
// place.
func (t *tick) unpark(a *plan.Registered) {
	if parked := t.parked[a]; len(parked) > 0 && t.busy[a] < a.Concurrency {
		t.parked[a] = parked[1:]
		t.queue(parked[0])
	}
}

// evaluate evaluates a call whose dependencies have all settled.
func (t *tick) evaluate(ctx context.Context, i int) error {
	if err := t.inject(ctx, t.recordedSpan(i).Began); err != nil {
		return err
	}
	if t.calls[i].retryDue {
		t.startRetry(i)
		return nil
	}
	switch t.byPerson(t.calls[i].record.Call) {
	case journal.ReasonSkipped:
		t.skip(i, journal.ReasonSkipped)
		return nil
	case journal.ReasonGiven:
		t.answerGiven(i)
		return nil
	}
	if h := t.calls[i].record.Hold; h != nil && h.Decision != "" {
		return t.applyDecision(ctx, i, h)
	}
	call := t.plan.Calls[i]
	reads := map[string]int64{}
	resolved, lacking, err := call.Resolve(ctx, t.lookup(ctx, i, reads))
	structural, wrong := errors.AsType[*plan.Fault](err)
	switch {
	case wrong:
		t.reject(i, &plan.Fault{Code: structural.Code, Err: t.hintEmpty(ctx, i, call.Template(), structural.Err)})
		return nil
	case err != nil:
		return err
	case lacking != nil:
		t.rejectMissing(i, lacking)
		return nil
	}
	granted, err := grant(ctx, t.resolver(i), call.ScopePaths, call.Instance, reads)
	if err != nil {
		return err
	}
	if fits, err := t.fits(ctx, i); !fits || err != nil {
		return err
	}
	if t.event.Approve.Holds(call) && t.calls[i].record.At == 0 {
		t.awaitApproval(i, resolved, granted, reads)
		return nil
	}
	return t.start(ctx, i, plan.Invocation{Call: resolved, Context: granted, Tool: call.Definition.Schema}, reads)
}

// fits reports whether the value there takes a call's method, and rejects the call if it does not.
func (t *tick) fits(ctx context.Context, i int) (bool, error) {
	call := t.plan.Calls[i]
	for _, path := range call.Output.Writes() {
		err := t.checkJoin(ctx, i, func(r store.Resolver) error { return r.CheckMethod(ctx, path, call.Instance, call.JoinMethod()) })
		if _, misfit := errors.AsType[*plan.Fault](err); misfit {
			t.reject(i, err)
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// lookup reads references for call i, as of now, and notes where each value
// came from.
func (t *tick) lookup(ctx context.Context, i int, reads map[string]int64) expr.Lookup {
	g, call := t.plan.Graph, t.plan.Calls[i]
	return func(path store.Path) (value any, exists, open bool, err error) {
		sources := g.SourcesOf(i, path)
		fresh := len(sources) == 0
		for _, s := range slices.Backward(sources) { // the last is the most likely
			if fresh = t.wroteAbove(s, path); fresh {
				break
			}
		}
		if !fresh {
			return nil, false, false, nil
		}
		resolved, err := t.resolver(i).Resolve(ctx, path, call.Instance)
		if err != nil {
			return nil, false, false, err
		}
		if !resolved.Exists {
			before, after := g.SplitWriters(i, path)
			return nil, false, len(before)+len(after) == 0, nil
		}
		reads[path.String()] = journal.NewestSeq(resolved.From)
		return resolved.Value, true, false, nil
	}
}

// wroteAbove reports whether a call has written at a path or above it.
func (t *tick) wroteAbove(i int, path store.Path) bool {
	return slices.ContainsFunc(t.calls[i].written, func(w store.Path) bool { return w.Contains(path) })
}

// grant builds what scopes let an instance see, by kind, and notes in reads, if
// it is not nil, where each value came from.
func grant(ctx context.Context, resolver store.Resolver, scopes []store.Path, instance string, reads map[string]int64) (map[string]any, error) {
	granted := map[string]any{}
	scopes = slices.Clone(scopes)
	slices.SortFunc(scopes, func(a, b store.Path) int { return len(a.String()) - len(b.String()) })
	for n, scope := range scopes {
		if slices.ContainsFunc(scopes[:n], func(wider store.Path) bool { return wider.Contains(scope) }) {
			continue
		}
		resolved, err := resolver.Resolve(ctx, scope, instance)
		if err != nil {
			return nil, err
		}
		if resolved.Exists {
			if reads != nil {
				reads[scope.String()] = journal.NewestSeq(resolved.From)
			}
			put(granted, append([]string{scope.Kind()}, scope.Segments()...), resolved.Value)
		}
	}
	return granted, nil
}

// put lays a value below objects that it makes on the way.
func put(object map[string]any, segments []string, v any) {
	for _, segment := range segments[:len(segments)-1] {
		child, ok := object[segment].(map[string]any)
		if !ok {
			child = map[string]any{}
			object[segment] = child
		}
		object = child
	}
	object[segments[len(segments)-1]] = v
}

// rejectMissing decides about a call whose expressions are missing though all that it
// depends on has settled: it waits, or it fails, or it is skipped.
func (t *tick) rejectMissing(i int, lacking *expr.Missing) {
	c := t.change(i)
	if lacking.Open {
		c.record.Status, c.record.WaitingOn = journal.Waiting, nil
		for _, path := range lacking.Paths {
			if before, after := t.plan.Graph.SplitWriters(i, path); len(before)+len(after) == 0 && !slices.Contains(c.record.WaitingOn, path.String()) {
				c.record.WaitingOn = append(c.record.WaitingOn, path.String())
			}
		}
		t.waiting.add(i, c.record.WaitingOn)
		t.recordCall(i)
		return
	}
	for _, path := range lacking.Paths {
		// The last may have replaced the others'.
		for _, w := range slices.Backward(t.plan.Graph.WritersFor(i, path)) {
			if !t.wroteAbove(w, path) {
				continue
			}
			how := "wrote above it, but without that key"
			if slices.Contains(t.calls[w].written, path) {
				how = "wrote there, and it is there no more"
			} else if path.Kind() == store.KindError && t.errorsBeside(w) {
				how += ", or another error has replaced it"
			}
			t.reject(i, plan.Faultf(plan.CodeExpression, "%s is missing: %s %s", path, t.plan.Graph.Label(w), how))
			return
		}
	}
	reason := t.skipReason(i, lacking.Paths)
	if reason == "" && lacking.Member != nil {
		t.reject(i, plan.Faultf(plan.CodeExpression, "%w", lacking.Member))
		return
	}
	t.skip(i, reason)
}

// errorsBeside reports whether another call than one has written an error, and so may have replaced
// its.
func (t *tick) errorsBeside(i int) bool {
	for other := range t.calls {
		if other != i && slices.ContainsFunc(t.calls[other].written, func(w store.Path) bool { return w.Kind() == store.KindError }) {
			return true
		}
	}
	return false
}

// skip ends a call that is not to run.
func (t *tick) skip(i int, reason string) {
	c := t.change(i)
	c.record.Status, c.record.Reason, c.record.At = journal.Skipped, reason, t.view.Seq()
	t.recordCall(i)
	t.unblock(i, true)
}

// reject fails a call before it starts. As of when it looked counts if it runs
// again.
func (t *tick) reject(i int, wrong error) {
	t.change(i).record.At = t.view.Seq()
	t.fail(i, failureOf(wrong))
}

// mostReasons bounds how many calls the reason of a skip names.
const mostReasons = 8

// skipReason says which branches or failures a skipped call was behind, first those that were
// not skipped themselves.
func (t *tick) skipReason(i int, paths []store.Path) string {
	var reasons []string
	var named []int
	for _, skipped := range []bool{false, true} {
		for _, path := range paths {
			for _, w := range t.plan.Graph.WritersFor(i, path) {
				status := t.calls[w].record.Status
				if (status == journal.Skipped) != skipped || slices.Contains(named, w) {
					continue
				}
				if len(named) == mostReasons {
					return strings.Join(append(reasons, "and more"), "; ")
				}
				reason := "%s took another branch than %s"
				switch status {
				case journal.Failed:
					reason = "%s failed, and so did not write %s"
				case journal.Skipped:
					reason = "%s was skipped, and so did not write %s"
				}
				named = append(named, w)
				label := fmt.Sprintf("call %s (%s)", t.calls[w].record.Call, t.plan.Calls[w].Tool)
				reasons = append(reasons, fmt.Sprintf(reason, label, path))
			}
		}
	}
	return strings.Join(reasons, "; ")
}

// start records that a call runs and hands it to a worker, unless it needs
// none.
func (t *tick) start(ctx context.Context, i int, in plan.Invocation, reads map[string]int64) error {
	c, call := t.change(i), t.plan.Calls[i]
	c.startedAt = t.runner.now()
	c.record.Status, c.record.Started, c.record.WaitingOn, c.record.Error = journal.Running, store.FormatDate(t.runner.dated(c.startedAt)), nil, nil
	if len(reads) > 0 {
		c.record.Reads = reads
	}
	if call.IsThought() {
		c.record.Thought = plan.Values{"call": call.ForModel(in.Call)}
	}
	if call.Activity == nil {
		return t.complete(ctx, &result{index: i, value: plan.Result{Value: call.Given.Value}, attempts: 0})
	}
	in.Key = t.context + "/" + c.record.Call
	activity := call.Activity.Current(call.ActivityName, call.Definition)
	c.record.Script, c.record.SHA256, c.record.Generation, c.record.NotIdempotent = activity.Script, activity.SHA256, "", activity.NotIdempotent
	if activity.Code != nil {
		c.record.Generation = activity.Code.Digest
		t.keepCode(activity.Code)
	}
	if c.record.At == 0 {
		c.record.At = t.view.Seq()
	}
	s := start{index: i, activity: activity, doer: call.ActivityName, invocation: in}
	switch {
	case call.AsksModel:
		s.invocation.Question = t.question(i, in)
	case call.Delegate != nil:
		if c.record.Child == "" {
			c.record.Attempts++
			var err error
			if c.record.Child, err = t.newChild(ctx, &c.record); err != nil {
				return err
			}
		}
		s.child = t.prepareChild(i, in)
	}
	s.speculative = t.speculativeOf(s)
	t.enqueueStart(s)
	t.unblock(i, c.record.Unstored)
	return nil
}

// enqueueStart has a worker get a call.
func (t *tick) enqueueStart(s start) {
	s.step = t.steps
	c := t.change(s.index)
	c.working, c.step = true, s.step
	t.occupy(s.index, 1)
	if s.speculative == nil {
		t.recordCall(s.index)
	}
	t.starts = append(t.starts, s)
}

// restart has a worker get a call again that could not run ahead, once it is recorded.
func (t *tick) restart(s start) {
	s.speculative = nil
	t.recordCall(s.index)
	t.starts = append(t.starts, s)
}

// waitIndex finds the calls that wait for a path: under it stand those that
// wait for it or for something below it.
type waitIndex map[store.Path]map[int][]store.Path

func (x waitIndex) add(i int, refs []string) {
	var paths []store.Path
	for _, text := range refs {
		if path, err := store.ParsePath(text); err == nil {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		for _, prefix := range path.Prefixes() {
			if x[prefix] == nil {
				x[prefix] = map[int][]store.Path{}
			}
			x[prefix][i] = paths
		}
	}
}

// take removes the calls that wait for what overlaps a path, and gives them.
func (x waitIndex) take(path store.Path) []int {
	woken := maps.Clone(x[path])
	for _, above := range path.Prefixes() {
		for i, paths := range x[above] {
			if slices.Contains(paths, above) {
				if woken == nil {
					woken = map[int][]store.Path{}
				}
				woken[i] = paths
			}
		}
	}
	for i, paths := range woken {
		for _, waited := range paths {
			for _, prefix := range waited.Prefixes() {
				delete(x[prefix], i)
				if len(x[prefix]) == 0 {
					delete(x, prefix)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(woken))
}
