package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"obelus/engine/plan"
	"obelus/store"
)

// Approval is a held call as it is shown to who decides about it (surface.md,
// approvals).
type Approval struct {
	Context   string      `json:"context"`
	Call      string      `json:"call"`
	Tool      string      `json:"tool"`
	Instance  string      `json:"instance,omitempty"`
	Arguments plan.Values `json:"arguments"`
	Scopes    []string    `json:"scopes"`
	Granted   plan.Values `json:"granted,omitempty"` // what the scopes let it see
	Since     string      `json:"since"`
}

// Approval shows a held call.
func (r Record) Approval() Approval {
	return Approval{r.Context, r.Call, r.Tool, r.Instance, r.Hold.Arguments, append([]string{}, r.Hold.Scopes...), r.Hold.Granted, r.Hold.Since}
}

// RunChange is how a run stands, as those who follow a context are told.
type RunChange struct {
	Context string    `json:"context"`
	Status  RunStatus `json:"status"`
	Plan    string    `json:"plan,omitempty"`
	Tick    int       `json:"tick"`
	Output  any       `json:"output"`
	Error   string    `json:"error,omitempty"`   // of the run itself; what its calls failed with is theirs
	Stopped bool      `json:"stopped,omitempty"` // it was interrupted since its host went: a server goes on with it
}

// ReadEntry tells what a journal's entry says: a [Record] of a call, or a
// [RunChange] where a tick begins or ends; nil for what is neither.
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

func ReadPlanEvent(entry store.Entry) (plan PlanEvent, err error) {
	if err := json.Unmarshal([]byte(entry.Data), &plan); err != nil {
		return plan, unread(entry, err)
	}
	plan.First = cmp.Or(plan.First, plan.Tick) // the first logs don't say: they have no run of several ticks
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

// IsInput tells whether an entry is something that a run may have come to a halt
// for: messages from outside, or a decision.
func IsInput(entry store.Entry) bool {
	if entry.Call != "" {
		return entry.Event == string(Ready)
	}
	return entry.Event == EventAppend || entry.Event == eventRelease
}

// IsEnd tells whether an entry is the end of a run, or of what its host could do for it: the
// context may be a delegate's, for which the call that it belongs to waits.
func IsEnd(entry store.Entry) bool {
	if entry.Event != EventRun || entry.Call != "" {
		return false
	}
	end, _, err := ReadRunEvent(entry)
	return err == nil && (end.Status == RunDone || end.Status == RunFailed || end.Stopped)
}

// HasInput tells whether something has come to a context which its run may have come
// to a halt for, and which nobody has taken up: it came since the run halted, or is a
// decision that came just then. So it tells of what has come to a delegate that it waits
// for; and of one that ended while somebody else was at it, or that nobody is at any more.
func (c Context) HasInput(ctx context.Context) (bool, error) {
	return c.isInput(ctx, true)
}

// ChildDone tells whether a run waits for a delegate that ended while somebody else was at it,
// or that nobody is at any more.
func (c Context) ChildDone(ctx context.Context) (bool, error) {
	return c.isInput(ctx, false)
}

// isInput is Freed, and with what has come besides Woken.
func (c Context) isInput(ctx context.Context, besides bool) (bool, error) {
	last, err := c.LastRun(ctx)
	if err != nil || last.Status != RunWaiting {
		return false, err
	}
	records, err := c.Records(ctx)
	if err != nil {
		return false, err
	}
	if besides {
		if came, err := last.came(ctx, c, records); came || err != nil {
			return came, err
		}
	}
	for i := range records {
		if r := &records[i]; r.Status == Waiting {
			if freed, err := c.childDone(ctx, r, besides); freed || err != nil {
				return freed, err
			}
		}
	}
	return false, nil
}

// came tells of a run that has halted whether messages or decisions have come.
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
	released := r.Event.Mode == plan.ModeLazy && !r.Held && !slices.ContainsFunc(records, begun)
	return released || slices.ContainsFunc(records, decided), nil
}

// childDone is woken for a call that waits, if that is for its delegate. Whoever is at
// that takes up what comes.
func (c Context) childDone(ctx context.Context, r *Record, besides bool) (bool, error) {
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
		return c.Sibling(child).isInput(ctx, besides)
	}
	return true, nil
}

// LeftBehind tells whether the run of a context that has come to its end or to a halt
// has fire-and-forget calls which are still at work, or were when its process died:
// resuming it records that.
func (r *Run) LeftBehind(ctx context.Context, c Context) (bool, error) {
	if !r.Detached {
		return false, nil
	}
	records, err := c.Records(ctx)
	return slices.ContainsFunc(records, Record.LeftBehind), err
}

// FailedBefore lists the calls that failed in the rounds of a context's newest run before the
// last: its planner went on whatever became of them, so that the run does not fail of it.
func (c Context) FailedBefore(ctx context.Context) ([]Record, error) {
	last, err := c.LastRun(ctx)
	if err != nil || last.Event.First >= last.Tick {
		return nil, err
	}
	records, err := c.Records(ctx)
	return slices.DeleteFunc(records, func(r Record) bool {
		return !r.Blamed() || r.Tick < last.Event.First || r.Tick >= last.Tick
	}), err
}

// Root is the context at the top, whose run the newest run of a context is part of:
// itself, if it is no delegate's, or if a plan was run there after the delegate's.
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
