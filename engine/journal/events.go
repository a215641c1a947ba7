package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"obelus/engine/plan"
	"obelus/store"
)

// Approval is a held call as shown to the person deciding about it (cmd/SURFACE.md, approvals).
type Approval struct {
	Context   string      `json:"context"`
	Call      string      `json:"call"`
	Tool      string      `json:"tool"`
	Instance  string      `json:"instance,omitempty"`
	Arguments plan.Values `json:"arguments"`
	Scopes    []string    `json:"scopes"`
	Granted   plan.Values `json:"granted,omitempty"` // values that the scopes grant
	Since     string      `json:"since"`
	Reasoning string      `json:"reasoning,omitempty"` // why the planner wants the call
	// What a person made of arguments before the plan ran, by place.
	Corrected map[string]string `json:"corrected,omitempty"`
}

// Approval shows a held call.
func (r Record) Approval() Approval {
	return Approval{r.Context, r.Call, r.Tool, r.Instance, r.Hold.Arguments, append([]string{}, r.Hold.Scopes...), r.Hold.Granted, r.Hold.Since, r.Hold.Reasoning, r.Corrected}
}

// RunChange is the state of a run as sent to the followers of a context.
type RunChange struct {
	Context string    `json:"context"`
	Status  RunStatus `json:"status"`
	Plan    string    `json:"plan,omitempty"`
	Tick    int       `json:"tick"`
	Output  any       `json:"output"`
	// Of the run itself; failures of calls are in their records.
	Error string `json:"error,omitempty"`
	// It was interrupted as its host stopped: a server resumes it.
	Stopped bool `json:"stopped,omitempty"`
}

// ReadEntry decodes a journal's entry: a [Record] of a call, or a [RunChange] where a tick begins
// or ends; nil for any other.
func ReadEntry(entry store.Entry) (any, error) {
	switch {
	case entry.Call != "":
		r, err := ReadRecord(entry)
		r.Context = entry.Context
		return r, err
	case entry.Event == EventPlan:
		plan, err := ReadPlanEvent(entry)
		if err != nil {
			return nil, err
		}
		return RunChange{Context: entry.Context, Status: RunRunning, Plan: plan.Plan, Tick: plan.Tick}, nil
	case entry.Event == EventRun:
		end, output, err := ReadRunEvent(entry)
		if end.Drains {
			return nil, err
		}
		change := RunChange{Context: entry.Context, Status: end.Status, Tick: end.Tick, Output: output, Error: end.Error, Stopped: end.Stopped}
		if end.Status == RunContinued {
			change.Status = RunRunning
		}
		return change, err
	}
	return nil, nil
}

// ReadPlanEvent decodes the data of a plan event. Its error is a [*DamagedError].
func ReadPlanEvent(entry store.Entry) (plan PlanEvent, err error) {
	if err := json.Unmarshal([]byte(entry.Data), &plan); err != nil {
		return plan, unread(entry, err)
	}
	// The first logs lack it: their runs have a single tick.
	plan.First = cmp.Or(plan.First, plan.Tick)
	return plan, nil
}

// ReadRunEvent reads how a tick ended. The output's numbers keep their text.
func ReadRunEvent(entry store.Entry) (end RunEvent, output any, err error) {
	var raw struct {
		RunEvent
		Output json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal([]byte(entry.Data), &raw); err != nil {
		return end, nil, unread(entry, err)
	}
	if raw.Status != RunContinued && !slices.Contains(runStatuses, raw.Status) {
		return end, nil, damaged(entry, "has the status %q, which no run has", raw.Status)
	}
	if raw.Status == RunCancelled && raw.Stopped { // as the first logs have it
		raw.Status = RunInterrupted
	}
	if output, err = store.DecodeWithin(raw.Output, plan.JournalDepth); err != nil {
		err = unread(entry, err)
	}
	return raw.RunEvent, output, err
}

// IsInput reports whether an entry is input that a halted run may wait for: foreign messages, or a
// decision.
func IsInput(entry store.Entry) bool {
	if entry.Call != "" {
		return entry.Event == string(Ready)
	}
	return entry.Event == EventAppend || entry.Event == eventRelease
}

// IsEnd reports whether an entry ends a run, or its host's part in it: if the context is a
// delegate's, the call that it belongs to waits for that.
func IsEnd(entry store.Entry) bool {
	if entry.Event != EventRun || entry.Call != "" {
		return false
	}
	end, _, err := ReadRunEvent(entry)
	return err == nil && (end.Status == RunDone || end.Status == RunFailed || end.Stopped)
}

// HasInput reports whether a context has input that its waiting run has not read yet: messages or a
// decision that were recorded after, or just before, the run halted, or a time that has come. The
// input of a delegate that the run waits for counts too, and so does a delegate that ended under
// another holder, or that has no holder any more.
func (c Context) HasInput(ctx context.Context) (bool, error) {
	last, records, err := c.waitingRun(ctx)
	if err != nil || last == nil {
		return false, err
	}
	if came, err := last.came(ctx, c, records); came || err != nil {
		return came, err
	}
	if due := last.Standing(records).Due; !due.IsZero() && !due.After(time.Now()) {
		return true, nil
	}
	return c.anyChild(ctx, records, Context.HasInput)
}

// ChildDone reports whether a run waits for a delegate that ended under another holder, or that has
// no holder any more.
func (c Context) ChildDone(ctx context.Context) (bool, error) {
	last, records, err := c.waitingRun(ctx)
	if err != nil || last == nil {
		return false, err
	}
	return c.anyChild(ctx, records, Context.ChildDone)
}

// waitingRun returns the newest run, if it waits, and the records of the context; nil if it does
// not.
func (c Context) waitingRun(ctx context.Context) (*Run, []Record, error) {
	last, err := c.LastRun(ctx)
	if err != nil || last.Status != RunWaiting {
		return nil, nil, err
	}
	records, err := c.Records(ctx)
	return &last, records, err
}

// anyChild reports whether the run has something to go on with by the delegate of a waiting call.
// waiting tells it of a delegate whose run waits too.
func (c Context) anyChild(ctx context.Context, records []Record, waiting func(Context, context.Context) (bool, error)) (bool, error) {
	for i := range records {
		if r := &records[i]; r.Status == Waiting {
			if done, err := c.childDone(ctx, r, waiting); done || err != nil {
				return done, err
			}
		}
	}
	return false, nil
}

// came reports whether a halted run has received messages or decisions.
func (r *Run) came(ctx context.Context, in Context, records []Record) (bool, error) {
	halt, _, err := store.Newest(ctx, in.Log, store.JournalFilter{Context: in.Name, Event: EventRun})
	if err != nil {
		return false, err
	}
	for entry, err := range in.Log.Journal(ctx, store.JournalFilter{Context: in.Name, After: halt.N}) {
		if err != nil || IsInput(entry) {
			return err == nil, err
		}
	}
	decided := func(c Record) bool { return c.Status == Ready }
	begun := func(c Record) bool { return c.Tick == r.Tick && c.Status != Blocked }
	released := r.Event.IsLazy() && !r.Held && !slices.ContainsFunc(records, begun)
	return released || slices.ContainsFunc(records, decided), nil
}

// childDone reports whether the run has something to go on with by the delegate of a waiting call:
// its end, or what waiting says where the delegate's run waits too. The delegate's holder, if any,
// takes up its input.
func (c Context) childDone(ctx context.Context, r *Record, waiting func(Context, context.Context) (bool, error)) (bool, error) {
	child, err := c.OwnChild(ctx, r)
	if err != nil || child == "" {
		return false, err
	}
	last, err := c.Sibling(child).LastRun(ctx)
	if err != nil || last.Unwanted() || last.Tick == 0 {
		return false, err
	}
	if !last.Event.OfDelegate() || last.Status.Finished() {
		return true, nil
	}
	if holder, err := c.Log.Holder(ctx, child); err != nil || holder != "" {
		return false, err
	}
	if last.Status == RunWaiting {
		return waiting(c.Sibling(child), ctx)
	}
	return true, nil
}

// LeftBehind reports whether a run that has ended or halted has background calls that are still at
// work, or were when its process died: a server goes on with them.
func (r *Run) LeftBehind(ctx context.Context, c Context) (bool, error) {
	return r.anyBackground(ctx, c, Record.LeftBehind)
}

// HasBackground reports whether a run that has ended or halted has background calls that have not
// ended.
func (r *Run) HasBackground(ctx context.Context, c Context) (bool, error) {
	return r.anyBackground(ctx, c, Record.InBackground)
}

func (r *Run) anyBackground(ctx context.Context, c Context, picks func(Record) bool) (bool, error) {
	if !r.Detached {
		return false, nil
	}
	// The calls of a fork in which nothing has gone on are those of its origin.
	if untouched, err := c.UntouchedFork(ctx); untouched || err != nil {
		return false, err
	}
	records, err := c.Records(ctx)
	return slices.ContainsFunc(records, picks), err
}

// FailedBefore lists the calls of a run that failed in its ticks from the first to the one before
// its last: the run does not fail because of them, since its planner was asked again.
func (c Context) FailedBefore(ctx context.Context, first, last int) ([]Record, error) {
	if first >= last {
		return nil, nil
	}
	records, err := c.Records(ctx)
	return slices.DeleteFunc(records, func(r Record) bool {
		return !r.Blamed() || r.Tick < first || r.Tick >= last
	}), err
}

// EndOfTick returns the seq at which a tick of the context ended or halted last; 0 if it has not.
func (c Context) EndOfTick(ctx context.Context, tick int) (seq int64, err error) {
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, Event: EventRun}) {
		if err != nil {
			return 0, err
		}
		if end, _, err := ReadRunEvent(entry); err == nil && end.Tick == tick {
			seq = entry.Seq
		}
	}
	return seq, nil
}

// Root returns the outermost context whose run the newest run of a context is part of: the context
// itself if it is no delegate's, or if a plan was run in it after the delegate's.
func (c Context) Root(ctx context.Context) (string, error) {
	for range plan.MaxDepth + 1 {
		origin, ok, err := c.OriginOf(ctx)
		if err != nil || !ok || origin.Parent == "" {
			return c.Name, err
		}
		if last, err := c.LastRun(ctx); err != nil || !last.Event.OfDelegate() {
			return c.Name, err
		}
		c.Name = origin.Parent
	}
	return c.Name, nil
}
