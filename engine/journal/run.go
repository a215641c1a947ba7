package journal

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"obelus/engine/plan"
	"obelus/store"
)

// Draining is the event recorded while the calls at work may still end.
func (e RunEvent) Draining() RunEvent {
	e.Drains, e.Who = true, Who{}
	return e
}

// The journal's events that are not a call's status.
const (
	EventPlan   = "plan"   // a tick begins; data is a PlanEvent
	EventRun    = "run"    // a tick has ended or halted; data is a RunEvent
	EventAppend = "append" // foreign messages were appended
	// A person has decided about a call that had an outcome; data is a DecisionEvent.
	EventDecision = "decision"
)

// PlanEvent describes a tick, beside the plan message.
type PlanEvent struct {
	Tick  int    `json:"tick"`
	Plan  string `json:"plan,omitempty"`  // the plan's file
	First int    `json:"first"`           // the first tick of its run
	Began string `json:"began,omitempty"` // when that began; empty in that tick itself
	// For how long the run had been at work before, see [RunEvent].
	Worked float64 `json:"worked_ms,omitempty"`
	// Of the plan message; 0 for a tick whose planner gave no valid plan.
	Seq int64 `json:"seq"`
	// The seq at which references were judged to exist or not.
	Start  int64           `json:"start"`
	Calls  int             `json:"calls"`
	Output json.RawMessage `json:"output,omitempty"`
	// Of a delegate: the alternatives of its call, and the one that the output goes to, if it has
	// chosen.
	Outcomes []string        `json:"outcomes,omitempty"`
	Choice   *plan.Choice    `json:"choice,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	Tools    json.RawMessage `json:"tools,omitempty"` // brought by the plan

	// A planner is asked again if there is no output.
	Planner bool `json:"planner,omitempty"`
	// For each path granted to the planner, the seq of the newest record in its value.
	Saw  map[string]int64 `json:"saw,omitempty"`
	Mode string           `json:"mode,omitempty"`
	// Its plan is lazy, and was released as the run was started. A fork does not inherit that.
	Released bool `json:"released,omitempty"`
	// What a person has decided about it, by a later entry; nil for nothing.
	Decision *PlanDecisionEvent `json:"-"`

	Approve plan.Policy `json:"approve,omitzero"` // of the run

	// Labels with which the run was started.
	Labels map[string]string `json:"labels,omitempty"`

	// Of the planner's solution; nil for an accepted one.
	Refused *Refusal `json:"refused,omitempty"`

	// ByModel reports that a model made the plan, and Model what that used; nil if it is not known.
	ByModel bool        `json:"by_model,omitempty"`
	Model   *plan.Usage `json:"model,omitempty"`
	// Warnings about the plan of a model, a line each. The next question shows them.
	Warnings []string `json:"warnings,omitempty"`
	// The question to the model; nil in logs of older versions, where its answers count as they are.
	Question *Question `json:"question,omitempty"`
}

// Entry is the journal's entry of the event.
func (e PlanEvent) Entry() store.Entry {
	kept, _ := e.Model.TakeExchanges()
	return store.Entry{Event: EventPlan, Data: string(store.EncodeJSON(e)), Exchanges: kept}
}

// Refusal identifies a planner's solution that was refused, so that a repetition is recognized.
type Refusal struct {
	Digest string `json:"digest"`
	Next   int64  `json:"next"` // the seq after the messages about it
	// How many solutions in a row were refused, this one included; 0 in older logs.
	Times int `json:"times,omitempty"`
	// The solution of a model, which is shown it when it is asked again; nil if there was none.
	Solution json.RawMessage `json:"solution,omitempty"`
}

// DecodeTools decodes the definitions that the plan brought.
func (e *PlanEvent) DecodeTools() (map[string]any, error) {
	v, err := DecodeJSON(e.Tools)
	tools, _ := v.(map[string]any)
	return tools, err
}

// DecodeJSON reads JSON, numbers as they are written; nothing is null.
func DecodeJSON(text json.RawMessage) (any, error) {
	if text == nil {
		return nil, nil
	}
	return store.DecodeWithin(text, plan.JournalDepth)
}

// RunEvent describes how a tick of a run ended or halted.
type RunEvent struct {
	Tick   int       `json:"tick"`
	Status RunStatus `json:"status"`
	Output any       `json:"output"`
	Error  string    `json:"error,omitempty"`
	// Of a run that failed by its calls: their failures, see [CauseOf]. It stands before Error.
	Cause string `json:"cause,omitempty"`
	// For how long the run had been at work by then, without the times in which it had halted.
	Worked float64 `json:"worked_ms,omitempty"`
	// The tick has ended, and the planner is to be asked again.
	Over     bool `json:"over,omitempty"`
	Stopped  bool `json:"stopped,omitempty"` // it was interrupted as its host was stopped
	Detached bool `json:"behind,omitempty"`  // fire-and-forget calls went on
	// Status is the one that it is about to get: its running calls may still end.
	Drains bool `json:"drains,omitempty"`
	// What a model used while it planned a tick that the run did not reach: the run was interrupted or
	// cancelled before the plan was recorded.
	Model *plan.Usage `json:"model,omitempty"`
	Who               // has cancelled it
}

// Milliseconds returns a duration as the journal has it, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// WorkedFor returns for how long the run had been at work.
func (e *RunEvent) WorkedFor() time.Duration { return durationOf(e.Worked) }

// durationOf returns the duration of some [Milliseconds].
func durationOf(ms float64) time.Duration {
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

// Entry is the journal's entry of the event.
func (e RunEvent) Entry() store.Entry {
	kept, _ := e.Model.TakeExchanges()
	return store.Entry{Event: EventRun, Data: string(store.EncodeJSON(e)), Exchanges: kept}
}

// RunStatus is the status of a run (protocol §7, Run status).
type RunStatus string

// The statuses of runs. A context in which no run has begun has none.
const (
	RunRunning     RunStatus = "running"
	RunDone        RunStatus = "done"
	RunFailed      RunStatus = "failed"
	RunWaiting     RunStatus = "waiting"
	RunInterrupted RunStatus = "interrupted" // it stopped before it ended or halted
	RunCancelled   RunStatus = "cancelled"   // a person or program cancelled it

	// RunContinued is only in the journal: a tick has ended, and the run goes on with the next one,
	// for which its planner is asked. The status of such a run is [RunRunning].
	RunContinued RunStatus = "continued"
)

var runStatuses = []RunStatus{RunDone, RunFailed, RunWaiting, RunInterrupted, RunCancelled, RunRunning}

// RunStatuses lists the statuses that a run may have.
func RunStatuses() []RunStatus { return slices.Clone(runStatuses) }

// Finished reports whether a tick has ended, so that another can begin.
func (s RunStatus) Finished() bool { return s == "" || s == RunDone || s == RunFailed }

// HasBackground reports whether the calls that a run does not wait for are counted apart from it:
// it has ended or halted by itself.
func (s RunStatus) HasBackground() bool { return s == RunDone || s == RunFailed || s == RunWaiting }

// Run is the newest run of a context as its journal has it.
type Run struct {
	Status RunStatus
	Plan   string // the plan's file
	Tick   int
	Output any
	Error  string

	// Stopped reports that it was interrupted as its host stopped ([obelus/engine.ErrStopped]) or
	// died: a server resumes it by itself.
	Stopped bool

	// Planner reports that its plan is a function, which is asked at every tick.
	Planner bool

	// Held reports that its plan is lazy, and has not been released by [obelus/engine.Release].
	Held bool

	Event    PlanEvent
	Cause    string        // why it failed by its calls; it stands before Error
	Started  time.Time     // start of its first tick; of its newest in older logs
	Worked   time.Duration // see [RunEvent]
	began    time.Time     // start of its newest tick
	After    int64         // the journal's position of the plan event
	Over     bool          // its newest tick has ended, and the planner is to be asked again
	Detached bool          // fire-and-forget calls went on when its newest tick ended
}

// Unwanted reports whether no server goes on with the run by itself: it was cancelled or
// interrupted on purpose, or it is in an untouched fork.
func (r *Run) Unwanted() bool {
	return r.Status == RunCancelled || r.Status == RunInterrupted && !r.Stopped
}

// LastRun reads a context's newest run from the journal. A context in which nothing has run gives
// the zero Run.
func (c Context) LastRun(ctx context.Context) (Run, error) {
	var run Run
	// To the journal an empty name means all contexts.
	if err := store.CheckStoredContext(c.Name); err != nil {
		return run, err
	}
	entry, ok, err := store.Newest(ctx, c.Log, store.JournalFilter{Context: c.Name, Event: EventPlan})
	if err != nil || !ok {
		return run, err
	}
	if run.Event, err = ReadPlanEvent(entry); err != nil {
		return run, err
	}
	run.Status, run.Tick, run.Plan, run.After = RunRunning, run.Event.Tick, run.Event.Plan, entry.N
	run.Planner, run.began, run.Started = run.Event.Planner, entry.Date, entry.Date
	run.Worked = durationOf(run.Event.Worked)
	if began, err := time.Parse(time.RFC3339Nano, run.Event.Began); err == nil {
		run.Started = began
	}
	if run.Event.IsLazy() {
		if run.Held, err = run.readDecision(ctx, c); err != nil {
			return run, err
		}
	}
	entry, ok, err = store.Newest(ctx, c.Log, store.JournalFilter{Context: c.Name, Event: EventRun})
	if err != nil || !ok || entry.N < run.After {
		return run, err
	}
	end, output, err := ReadRunEvent(entry)
	if err != nil {
		return run, err
	}
	run.Status, run.Error, run.Stopped, run.Detached = end.Status, end.Error, end.Stopped, end.Detached
	run.Cause, run.Worked = end.Cause, durationOf(end.Worked)
	run.Over = end.Over || end.Status == RunContinued
	run.Held = run.Held && !run.Status.Finished() && !run.Over
	if end.Status == RunContinued {
		run.Status = RunRunning
	}
	run.Output = output
	return run, nil
}

// Count counts the refused solution after the one before it; nil where that was accepted.
func (r *Refusal) Count(before *Refusal) {
	if r == nil {
		return
	}
	r.Times = 1
	if before != nil {
		r.Times += max(before.Times, 1)
	}
}

// Repeats reports whether the refused solution equals the one that was refused just before it, and
// nothing but the messages about that refusal has been appended meanwhile. start is the context's
// seq when the planner was asked.
func (r *Refusal) Repeats(before *Refusal, start int64) bool {
	return r != nil && before != nil && r.Digest == before.Digest && start == before.Next
}

// ContextTools returns a registry with the tools that a context's messages had defined besides when
// the tick began.
func (e *PlanEvent) ContextTools(ctx context.Context, c Context, registry *plan.Registry) (*plan.Registry, error) {
	if e.Start == 0 {
		return registry, nil
	}
	return c.WithTools(ctx, e.Start, registry)
}

// WithTools returns a registry with the tools that a context's messages define besides, up to a seq
// or, with 0, by now.
func (c Context) WithTools(ctx context.Context, at int64, registry *plan.Registry) (*plan.Registry, error) {
	tools := map[string]*plan.Tool{}
	for m, err := range c.Log.Messages(ctx, store.Filter{Context: c.Name, Type: store.TypeTool, At: at}) {
		if err != nil {
			return nil, err
		}
		if err := registry.ReadTools(m, tools); err != nil {
			return nil, err
		}
	}
	return registry.With(tools), nil
}

// Plans returns the plans of the context from a tick on.
func (c Context) Plans(ctx context.Context, first int) ([]PlanEvent, error) {
	var all []PlanEvent
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, Event: EventPlan}) {
		if err != nil {
			return nil, err
		}
		event, err := ReadPlanEvent(entry)
		if err != nil {
			return nil, err
		}
		if event.Tick < first {
			continue
		}
		if event.IsLazy() {
			if event.Decision, err = c.PlanDecision(ctx, event.Tick, entry.N); err != nil {
				return nil, err
			}
		}
		all = append(all, event)
	}
	return all, nil
}
