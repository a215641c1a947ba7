package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"obelus/store"
)

// The journal's events that are not a call's status.
const (
	eventPlan     = "plan"     // a tick begins; data is a planEvent
	eventRun      = "run"      // a tick has come to its end, or to a halt; data is a runEvent
	eventRelease  = "release"  // a person lets a lazy plan run
	eventAppend   = "append"   // messages came from outside a run
	eventDecision = "decision" // a person has decided about a call that had come to something; data is a decisionEvent
)

// planEvent is what a tick is made of, beside the plan message.
type planEvent struct {
	Tick   int             `json:"tick"`
	Plan   string          `json:"plan,omitempty"` // the plan's file
	First  int             `json:"first"`          // the tick that its run began with
	Seq    int64           `json:"seq"`            // of the plan message; 0 for a tick whose planner gave no good plan
	Start  int64           `json:"start"`          // the seq at which references were judged to exist or not
	Calls  int             `json:"calls"`
	Output json.RawMessage `json:"output,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Tools  json.RawMessage `json:"tools,omitempty"` // that the plan brought with it

	Planner bool             `json:"planner,omitempty"` // a planner is asked again if there is no output
	Saw     map[string]int64 `json:"saw,omitempty"`     // for each path granted to the planner, the seq of the newest record in its value
	Mode    string           `json:"mode,omitempty"`
	Approve Policy           `json:"approve,omitzero"` // of the run

	Refused *refusal `json:"refused,omitempty"` // of the planner's solution; nil for a good one
}

// refusal is a planner's solution that was refused, as far as it takes to know it again.
type refusal struct {
	Digest string `json:"digest"`
	Next   int64  `json:"next"` // the seq after the messages that tell of it
}

// tools decodes the definitions that the plan brought.
func (e *planEvent) tools() (map[string]any, error) {
	v, err := decode(e.Tools)
	tools, _ := v.(map[string]any)
	return tools, err
}

// decode reads JSON, numbers as they are written; nothing is null.
func decode(text json.RawMessage) (any, error) {
	if text == nil {
		return nil, nil
	}
	return store.DecodeWithin(text, journalDepth)
}

// runEvent is how a run ended, or where it stands.
type runEvent struct {
	Tick    int       `json:"tick"`
	Status  RunStatus `json:"status"`
	Output  any       `json:"output"`
	Error   string    `json:"error,omitempty"`
	Over    bool      `json:"over,omitempty"`    // the tick has ended, and the planner is to be asked again
	Stopped bool      `json:"stopped,omitempty"` // it was interrupted since its host was stopped
	Behind  bool      `json:"behind,omitempty"`  // fire-and-forget calls went on
	Drains  bool      `json:"drains,omitempty"`  // it is about to end so: its calls may come to their end yet
	Who               // has cancelled it
}

// RunStatus is how a run stands.
type RunStatus string

// The statuses of runs. A context in which no run has begun has none.
const (
	RunRunning     RunStatus = "running"
	RunDone        RunStatus = "done"
	RunFailed      RunStatus = "failed"
	RunWaiting     RunStatus = "waiting"
	RunInterrupted RunStatus = "interrupted" // it has ended before it came to its end or to a halt
	RunCancelled   RunStatus = "cancelled"   // a person or program cancelled it

	// runContinued ends a tick after which the planner is asked again.
	runContinued RunStatus = "continued"
)

var runStatuses = []RunStatus{RunDone, RunFailed, RunWaiting, RunInterrupted, RunCancelled, RunRunning}

// RunStatuses lists them.
func RunStatuses() []RunStatus { return slices.Clone(runStatuses) }

// Finished tells whether a tick has come to its end, so that another can begin.
func (s RunStatus) Finished() bool { return s == "" || s == RunDone || s == RunFailed }

// Run is the newest run of a context as its journal tells it.
type Run struct {
	Status RunStatus
	Plan   string // the plan's file
	Tick   int
	Output any
	Error  string

	// Stopped tells of an interrupted one that its host went ([ErrStopped]) or died: a
	// server goes on with it by itself.
	Stopped bool

	// Planner tells that its plan is a function, which is asked at every tick.
	Planner bool

	// Held tells that its plan is lazy, and has not been released by [Release].
	Held bool

	plan   planEvent
	began  time.Time // its newest tick, as after
	after  int64     // the journal's position of the plan event
	over   bool      // its newest tick has ended, and the planner is to be asked again
	behind bool      // fire-and-forget calls went on when its newest tick ended
}

// Unwanted tells whether somebody has cancelled or interrupted it, or nobody has gone on with
// it in a fork: it goes on if it is resumed, and not by itself.
func (r *Run) Unwanted() bool {
	return r.Status == RunCancelled || r.Status == RunInterrupted && !r.Stopped
}

// LastRun reads what the journal has of a context's newest run. A context in
// which nothing has run gives the zero Run.
func LastRun(ctx context.Context, log store.Log, name string) (Run, error) {
	var run Run
	if err := store.CheckStoredContext(name); err != nil { // to the journal an empty name means all contexts
		return run, err
	}
	entry, ok, err := store.Newest(ctx, log, store.JournalFilter{Context: name, Event: eventPlan})
	if err != nil || !ok {
		return run, err
	}
	if run.plan, err = readPlanEvent(entry); err != nil {
		return run, err
	}
	run.Status, run.Tick, run.Plan, run.after = RunRunning, run.plan.Tick, run.plan.Plan, entry.N
	run.Planner, run.began = run.plan.Planner, entry.Date
	if run.plan.Mode == modeLazy {
		released, err := run.released(ctx, log, name, 0)
		if err != nil {
			return run, err
		}
		run.Held = !released
	}
	entry, ok, err = store.Newest(ctx, log, store.JournalFilter{Context: name, Event: eventRun})
	if err != nil || !ok || entry.N < run.after {
		return run, err
	}
	end, output, err := readRunEvent(entry)
	if err != nil {
		return run, err
	}
	run.Status, run.Error, run.Stopped, run.behind = end.Status, end.Error, end.Stopped, end.Behind
	run.Held = run.Held && !run.Status.Finished()
	if run.over = end.Over || end.Status == runContinued; end.Status == runContinued {
		run.Status = RunRunning
	}
	run.Output = output
	return run, nil
}
