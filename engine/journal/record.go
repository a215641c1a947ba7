package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/plan"
	"obelus/store"
)

// Status is the status of a call (cmd/SURFACE.md, calls).
type Status string

// The statuses of calls.
const (
	Blocked Status = "blocked" // a call that it depends on has not settled
	Waiting Status = "waiting" // a value from outside the plan is missing
	// A person has decided about it, and the run has not been resumed yet.
	Ready   Status = "ready"
	Held    Status = "held"    // it waits for a person's decision
	Running Status = "running" // it has started
	Done    Status = "done"    // it has settled, and its result is recorded
	Failed  Status = "failed"  // it has settled without a result
	Skipped Status = "skipped" // it has settled: a value that it needs was not written
	// It was stopped with its process, and runs again when the run is resumed.
	Interrupted Status = "interrupted"
	// It was stopped as its run was cancelled, and runs again if that is resumed.
	Cancelled Status = "cancelled"
	InDoubt   Status = "in-doubt" // it had started when it was stopped, and must not run twice
)

var statuses = []Status{Blocked, Waiting, Ready, Held, Running, Done, Failed, Skipped, Interrupted, Cancelled, InDoubt}

// Settled reports whether a call has ended.
func (s Status) Settled() bool { return s == Done || s == Failed || s == Skipped }

// Outcomes of calls that differ from their status, see [Record.Outcome].
const (
	OutcomeHandled  = "handled"  // it failed, and the plan handled its failure
	OutcomeRejected = "rejected" // a person rejected it, whether or not the plan handled that
)

// Outcomes lists what [Record.Outcome] may be.
func Outcomes() []string {
	all := []string{OutcomeHandled, OutcomeRejected}
	for _, s := range statuses {
		all = append(all, string(s))
	}
	return all
}

// Outcome is the outcome of a call in a word: its status, or, for a call that is done or failed,
// handled or rejected where that applies.
func (r Record) Outcome() string {
	switch {
	case r.Handled["code"] == Rejected, r.Status == Failed && r.Error["code"] == Rejected:
		return OutcomeRejected
	case r.Handled != nil:
		return OutcomeHandled
	}
	return string(r.Status)
}

// Is reports whether one of some words is the call's status or outcome.
func (r Record) Is(words []string) bool {
	return slices.Contains(words, string(r.Status)) || slices.Contains(words, r.Outcome())
}

// Record is a call as the journal has it. Every change of its status writes a record, and every
// attempt, so the last record of a call has its whole state. A call that ended before its start
// could be seen has no record of the start (see [plan.Speculative]).
type Record struct {
	Call     string  `json:"call"` // "1.2": tick and position
	Context  string  `json:"context,omitempty"`
	Tick     int     `json:"tick"`
	Position int     `json:"position"`
	Tool     string  `json:"tool"`
	Status   Status  `json:"status"`
	Instance string  `json:"instance,omitempty"`
	Attempts int     `json:"attempts"`
	Started  string  `json:"started,omitempty"`
	Duration float64 `json:"duration_ms"`
	// By reference, the newest seq that its value came from.
	Reads  map[string]int64 `json:"reads,omitempty"`
	Writes []string         `json:"writes,omitempty"` // the paths that it wrote
	Script string           `json:"script,omitempty"`
	SHA256 string           `json:"script_sha256,omitempty"`
	// Digest of the scripts that it ran with.
	Generation string `json:"generation,omitempty"`
	// Why it failed; while it is retried, why the last attempt did.
	Error plan.Values `json:"error,omitempty"`
	// Of a call that is done though it failed: code and message of the failure, which went to its
	// last alternative.
	Handled plan.Values `json:"handled,omitempty"`
	// It pauses before the next attempt: it is running where the run waits for that, and waiting
	// where the pause is one that the run may end in (see [obelus/engine.Runner].Rest).
	Rests    bool   `json:"rests,omitempty"`
	RetryAt  string `json:"retry_at,omitempty"` // time of the next attempt
	Failures int    `json:"failures,omitempty"` // of a call that pauses: its failed attempts in a row
	// Of a call that has been retried: the bound on its attempts.
	MaxTries  int      `json:"max_attempts,omitempty"`
	WaitingOn []string `json:"waiting_on,omitempty"`
	// Of a skip: the branch or the failure that caused it.
	Reason   string `json:"reason,omitempty"`
	Unstored bool   `json:"unstored,omitempty"`
	At       int64  `json:"at,omitempty"` // the seq as of which it read
	// The context that its delegate runs in.
	Child string `json:"child,omitempty"`
	// Of a latent call without an output path: call and output.
	Thought plan.Values `json:"thought,omitempty"`
	// Of an anonymous delegate's call: the result of its activity.
	Given plan.Values `json:"given,omitempty"`
	// Its delegate's failed calls run again.
	Retry bool `json:"retry,omitempty"`
	// It has begun, and its activity must not run twice.
	NotIdempotent bool `json:"once,omitempty"`
	// Of a call that runs again: the seq as of which it reads what calls that do not run again
	// wrote.
	Before int64 `json:"before,omitempty"`
	// Of a call that runs again or is retried: the seq up to which its earlier messages are
	// superseded.
	SupersededUpTo int64 `json:"again,omitempty"`
	// Of a call with an _if, once that has been evaluated.
	If *Condition `json:"if,omitempty"`
	// Of a call with _at or _in: when it is due, once that is known. Of one whose delegate waits for
	// a time: when that is.
	Due string `json:"due,omitempty"`
	// The first thing that its expressions came across and that is seldom meant, as a text that was
	// compared with a number; empty for none.
	Warning string `json:"warning,omitempty"`
	// Of a call that is or was held for a person.
	Hold *Hold `json:"hold,omitempty"`
	// What a person made of it before its plan ran, by place, see
	// [PlanDecisionEvent.CorrectionsOf]. It is for those who are shown the call: the journal has it
	// with the decision.
	Corrected map[string]string `json:"corrected,omitempty"`
	// Of a call that a model answered: what that used, in all its attempts.
	Model *plan.Usage `json:"model,omitempty"`
	// Of a latent call that a model has answered: with its plan, or as it was asked.
	Answered *Answered `json:"answered,omitempty"`
	// Of a latent call that a model answered with its plan, where that does not count.
	SetAside *SetAside `json:"set_aside,omitempty"`
}

// Condition is the outcome of a call's _if, which is evaluated once.
type Condition struct {
	Holds bool `json:"holds"` // else the call is skipped
	// By reference, the newest seq that its value came from.
	Reads map[string]int64 `json:"reads,omitempty"`
}

// AwaitsRetry reports whether the call has failed and pauses before the next attempt.
func (r *Record) AwaitsRetry() bool {
	return r.Rests && (r.Status == Running || r.Status == Waiting)
}

// WaitsUntil returns the time for which the call waits, of its next attempt too; ok is false if it
// waits for none.
func (r *Record) WaitsUntil() (due time.Time, ok bool) {
	if r.Status != Waiting || len(r.WaitingOn) > 0 && r.Child == "" {
		return due, false
	}
	text := r.Due
	if r.Rests {
		text = r.RetryAt
	}
	due, err := time.Parse(time.RFC3339, text)
	return due, err == nil
}

// EarliestDue returns the earliest time for which one of some calls waits; ok is false if none
// waits for a time.
func EarliestDue(calls []Record) (due time.Time, ok bool) {
	for i := range calls {
		if t, waits := calls[i].WaitsUntil(); waits && (!ok || t.Before(due)) {
			due, ok = t, true
		}
	}
	return due, ok
}

// Entry returns the journal entry with the record as its data. It leaves out the context, which the
// entry has, and corrections of the plan, which the decision about the plan has.
func (r Record) Entry() store.Entry {
	r.Context, r.Corrected = "", nil
	return store.Entry{Call: r.Call, Event: string(r.Status), Data: r.JSON()}
}

// JSON returns the record as encoding/json would write it.
func (r *Record) JSON() string { return string(r.AppendJSON(nil)) }

// TakeEntry is [Record.Entry] with the exchanges of the record's usage, which the record lacks from
// then on. The text of the entry is written to a buffer, which is returned.
func (r *Record) TakeEntry(buffer []byte) (store.Entry, []byte) {
	e := store.Entry{Call: r.Call, Event: string(r.Status)}
	e.Exchanges, r.Model = r.Model.TakeExchanges()
	corrected := r.Corrected
	r.Corrected = nil
	buffer = r.AppendJSON(buffer)
	r.Corrected = corrected
	e.Data = string(buffer)
	return e, buffer
}

// AppendJSON appends the record to b, as encoding/json would write it. One or two are written for
// each call: reflection would cost a tenth of a call's time (decisions/devices-for-speed.md).
func (r *Record) AppendJSON(b []byte) []byte {
	w := jsonvalue.BeginObject(b)
	w.String("call", r.Call)
	w.NonEmpty("context", r.Context)
	w.Int("tick", int64(r.Tick))
	w.Int("position", int64(r.Position))
	w.String("tool", r.Tool)
	w.String("status", string(r.Status))
	w.NonEmpty("instance", r.Instance)
	w.Int("attempts", int64(r.Attempts))
	w.NonEmpty("started", r.Started)
	w.Value("duration_ms", r.Duration)
	if len(r.Reads) > 0 {
		w.Value("reads", r.Reads)
	}
	if len(r.Writes) > 0 {
		w.Value("writes", r.Writes)
	}
	w.NonEmpty("script", r.Script)
	w.NonEmpty("script_sha256", r.SHA256)
	w.NonEmpty("generation", r.Generation)
	w.Object("error", r.Error)
	w.Object("handled", r.Handled)
	w.True("rests", r.Rests)
	w.NonEmpty("retry_at", r.RetryAt)
	w.NonZero("failures", int64(r.Failures))
	w.NonZero("max_attempts", int64(r.MaxTries))
	if len(r.WaitingOn) > 0 {
		w.Value("waiting_on", r.WaitingOn)
	}
	w.NonEmpty("reason", r.Reason)
	w.True("unstored", r.Unstored)
	w.NonZero("at", r.At)
	w.NonEmpty("child", r.Child)
	w.Object("thought", r.Thought)
	w.Object("given", r.Given)
	w.True("retry", r.Retry)
	w.True("once", r.NotIdempotent)
	w.NonZero("before", r.Before)
	w.NonZero("again", r.SupersededUpTo)
	if r.If != nil {
		w.Value("if", r.If)
	}
	w.NonEmpty("due", r.Due)
	w.NonEmpty("warning", r.Warning)
	if r.Hold != nil {
		w.Value("hold", r.Hold)
	}
	if len(r.Corrected) > 0 {
		w.Value("corrected", r.Corrected)
	}
	if r.Model != nil {
		w.Value("model", r.Model)
	}
	if r.Answered != nil {
		w.Value("answered", r.Answered)
	}
	if r.SetAside != nil {
		w.Value("set_aside", r.SetAside)
	}
	return w.End()
}

// Records returns the calls of a context as its journal has them, in the order of its plans,
// including calls that have not begun.
func (c Context) Records(ctx context.Context) ([]Record, error) {
	return c.RecordsFrom(ctx, 0, 0, nil)
}

// RecordsFrom is [Context.Records] for the calls of a tick and of later ones. It reads the journal
// after position n, and calls observe, which may be nil, with each entry.
func (c Context) RecordsFrom(ctx context.Context, tick int, n int64, observe func(store.Entry) error) ([]Record, error) {
	h := c.wholeHistory(tick, n)
	if err := h.advance(ctx, observe); err != nil {
		return nil, err
	}
	return h.records(ctx)
}

// wholeHistory returns a history without any entry yet, which reads entries whole: those after
// position n, of calls of a tick and of later ones.
func (c Context) wholeHistory(tick int, n int64) *History {
	h := HistoryOf(c.Log, c.Name)
	h.whole, h.firstTick, h.n = true, tick, n
	return h
}

// StatusIn returns the status that a call's entry gives it, without its data; ok is false for an
// event that is none.
func StatusIn(entry store.Entry) (status Status, ok bool) {
	for _, s := range statuses {
		if string(s) == entry.Event {
			return s, true
		}
	}
	return "", false
}

// ReadRecord decodes the data of a call's entry. Its error is a [*DamagedError].
func ReadRecord(entry store.Entry) (r Record, err error) {
	if err := json.Unmarshal([]byte(entry.Data), &r); err != nil {
		return r, unread(entry, err)
	}
	switch {
	case !slices.Contains(statuses, r.Status):
		return r, damaged(entry, "has the status %q, which no call has", r.Status)
	case r.Call != entry.Call || r.Call != CallID(r.Tick, r.Position):
		return r, damaged(entry, "is about call %s, and tells of call %s at place %d of tick %d", entry.Call, r.Call, r.Position, r.Tick)
	}
	return r, nil
}

// NewRecord returns the record of a call as its tick begins.
func NewRecord(tick int, c *plan.Call) Record {
	return Record{
		Call: CallID(tick, c.Position), Tick: tick, Position: c.Position,
		Tool: c.Tool, Instance: c.Instance, Status: Blocked, Unstored: c.FireAndForget(),
	}
}

// CallID returns the name of a call, as in "1.2": the second call of tick 1.
func CallID(tick, position int) string { return fmt.Sprintf("%d.%d", tick, position) }

// PlanMessage reads the calls of the plan message at a seq, of which a plan event has told.
func (c Context) PlanMessage(ctx context.Context, seq int64) ([]any, error) {
	if calls, ok, err := c.planAt(ctx, seq); ok || err != nil {
		return calls, err
	}
	told := int64(0)
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, Event: EventPlan}) {
		if err != nil {
			return nil, err
		}
		if event, err := ReadPlanEvent(entry); err == nil && event.Seq == seq {
			told = entry.N
			break
		}
	}
	calls, ok, err := c.planAt(ctx, seq)
	if !ok && err == nil {
		what := fmt.Sprintf("message %d of its log is not the plan that it tells of", seq)
		err = c.unlessPruned(ctx, told, &DamagedError{c.Name, what})
	}
	return calls, err
}

// planAt reads the calls of the message at a seq; ok is false if that is no plan.
func (c Context) planAt(ctx context.Context, seq int64) (calls []any, ok bool, err error) {
	m, err := c.MessageAt(ctx, seq)
	if m == nil || err != nil || m.Type != store.TypePlan {
		return nil, false, err
	}
	calls, ok = m.Data.Value.([]any)
	return calls, ok, nil
}

// MessageAt reads the message at a seq, nil where there is none.
func (c Context) MessageAt(ctx context.Context, seq int64) (*store.Message, error) {
	for m, err := range c.Log.Messages(ctx, store.Filter{Context: c.Name, After: seq - 1, At: seq}) {
		return m, err
	}
	return nil, nil
}
