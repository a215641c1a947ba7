package history

import (
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// Summary describes a context for lists (cmd/SURFACE.md, contexts).
type Summary struct {
	Context string            `json:"context"`
	Status  journal.RunStatus `json:"status,omitempty"` // of its newest run
	// The run was interrupted as its host stopped or died: a server resumes it.
	Stopped bool   `json:"stopped,omitempty"`
	Plan    string `json:"plan,omitempty"`
	// The context whose delegate it is, or from which it was forked.
	Parent string `json:"parent,omitempty"`
	At     any    `json:"at,omitempty"` // the parent's call, or for a fork the seq
	// Number of its newest tick, and of the calls of that, by what has become of them.
	Tick    int `json:"tick,omitempty"`
	Calls   int `json:"calls,omitempty"`
	Done    int `json:"done,omitempty"`
	Failed  int `json:"failed,omitempty"`
	Waiting int `json:"waiting,omitempty"` // for something from outside
	Held    int `json:"held,omitempty"`    // decisions that a person is to make, see [Summary.AddHeld]

	Retrying int `json:"retrying,omitempty"` // calls that pause before another attempt
	// Calls for which the run, which has ended or halted, does not wait, and that have not ended.
	Background int `json:"background,omitempty"`
	// The first paths that a waiting run waits for.
	WaitingOn []string `json:"waiting_on,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
	// When a waiting run is resumed though nothing has come.
	Due      string `json:"due,omitempty"`
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"` // size of the messages as JSON, without those that a fork shares
	Created  string `json:"created"`
	Updated  string `json:"updated"`
	// When its newest run began, and for how long it has been at work, without the times in which it
	// waited.
	Started  string  `json:"started,omitempty"`
	Duration float64 `json:"duration_ms,omitempty"`
	// Why its newest run failed, by itself or by its calls; long ones are cut.
	Error string `json:"error,omitempty"`
}

// Summarize describes a context.
func Summarize(info store.ContextInfo) Summary {
	status, stopped := journal.StatusOf(info)
	at := &info.Standing
	s := Summary{
		Context: info.Context, Status: status, Stopped: stopped, Plan: at.Plan, Tick: at.Tick, Error: at.Error, Labels: at.Labels,
		Calls: at.Calls, Done: at.Done, Failed: at.Failed, Waiting: at.Waiting, Held: at.Held, Retrying: at.Retrying, Background: at.Background, WaitingOn: at.WaitingOn,
		Messages: info.Messages, Bytes: info.Bytes, Created: store.FormatDate(info.Created), Updated: store.FormatDate(info.Updated),
	}
	if !slices.Contains(retryStatuses, status) { // its process died in a pause
		s.Retrying = 0
	}
	if !at.Started.IsZero() {
		s.Started = store.FormatDate(at.Started)
		s.Duration = journal.Milliseconds(workedFor(at, status))
	}
	if status == journal.RunWaiting && !at.Due.IsZero() {
		s.Due = store.FormatDate(at.Due)
	}
	switch o := info.Origin; {
	case o.Parent != "":
		s.Parent, s.At = o.Parent, o.Call
	case o.Fork != "":
		s.Parent, s.At = o.Fork, o.At
	}
	return s
}

// workedFor returns for how long a run has been at work.
func workedFor(s *store.Standing, status journal.RunStatus) time.Duration {
	if status == journal.RunRunning && !s.Due.IsZero() {
		return s.Worked + max(0, time.Since(s.Due))
	}
	return s.Worked
}

// AddHeld counts the decisions that delegates of the context wait for besides its own. held has
// both, by context, as [ListHeld] returns them.
func (s *Summary) AddHeld(held map[string]int) {
	if n := held[s.Context]; n > s.Held && !s.Status.Finished() {
		s.Held = n
	}
}
