package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/plan"
	"obelus/store"
)

// Status is where a call stands (surface.md, calls).
type Status string

// The statuses of calls.
const (
	Blocked     Status = "blocked"     // something it depends on has not settled
	Waiting     Status = "waiting"     // something outside the plan is missing
	Ready       Status = "ready"       // a person has decided about it, and the run has not gone on yet
	Held        Status = "held"        // it waits for a person to decide
	Running     Status = "running"     // it has started
	Done        Status = "done"        // it has settled, and its result is recorded
	Failed      Status = "failed"      // it has settled without a result
	Skipped     Status = "skipped"     // it has settled: what it needs was not written
	Interrupted Status = "interrupted" // it was stopped with its process, and runs again when the run goes on
	Cancelled   Status = "cancelled"   // it was stopped as somebody gave up its run, and runs again if that goes on
	InDoubt     Status = "in-doubt"    // it had started when it was stopped, and must not run twice
)

var statuses = []Status{Blocked, Waiting, Ready, Held, Running, Done, Failed, Skipped, Interrupted, Cancelled, InDoubt}

// Statuses lists them.
func Statuses() []Status { return slices.Clone(statuses) }

// Settled tells whether a call has come to its end.
func (s Status) Settled() bool { return s == Done || s == Failed || s == Skipped }

// What a call came to that its status alone does not tell, see [Record.Outcome].
const (
	OutcomeHandled  = "handled"  // it failed, and its failure went where the plan has it
	OutcomeRejected = "rejected" // a person did not let it run, and the plan does not handle that
)

// Outcomes lists what [Record.Outcome] may be.
func Outcomes() []string {
	all := []string{OutcomeHandled, OutcomeRejected}
	for _, s := range statuses {
		all = append(all, string(s))
	}
	return all
}

// Outcome is what a call came to in a word: its status, or where that is done or failed
// whether it was handled or rejected.
func (r Record) Outcome() string {
	switch {
	case r.Handled != nil:
		return OutcomeHandled
	case r.Status == Failed && r.Error["code"] == Rejected:
		return OutcomeRejected
	}
	return string(r.Status)
}

// Is tells whether a call stands in one of some ways: by its status, or its outcome.
func (r Record) Is(words []string) bool {
	return slices.Contains(words, string(r.Status)) || slices.Contains(words, r.Outcome())
}

// Record is a call as the journal has it. Every change of its status writes
// one, and every try of it, so the last of a call tells all. But there is none that a call
// runs which has ended before that could be seen (see [plan.Speculative]).
type Record struct {
	Call           string           `json:"call"` // "1.2": tick and position
	Context        string           `json:"context,omitempty"`
	Tick           int              `json:"tick"`
	Position       int              `json:"position"`
	Tool           string           `json:"tool"`
	Status         Status           `json:"status"`
	Instance       string           `json:"instance,omitempty"`
	Attempts       int              `json:"attempts"`
	Started        string           `json:"started,omitempty"`
	Duration       float64          `json:"duration_ms"`
	Reads          map[string]int64 `json:"reads,omitempty"`  // reference: the newest seq that its value came from
	Writes         []string         `json:"writes,omitempty"` // the paths that it wrote
	Script         string           `json:"script,omitempty"`
	SHA256         string           `json:"script_sha256,omitempty"`
	Generation     string           `json:"generation,omitempty"`   // the digest of the scripts that it ran with
	Error          plan.Values      `json:"error,omitempty"`        // why it failed, or, of one that is tried again, why the last try did
	Handled        plan.Values      `json:"handled,omitempty"`      // of one that is done, though it failed: code and message of the failure, which went to its last alternative
	Rests          bool             `json:"rests,omitempty"`        // it runs no more until it is tried again
	RetryAt        string           `json:"retry_at,omitempty"`     // when that is
	MaxTries       int              `json:"max_attempts,omitempty"` // of one that has been tried again: how often it is tried at most
	WaitingOn      []string         `json:"waiting_on,omitempty"`
	Reason         string           `json:"reason,omitempty"` // of a skip: the branch or the failure that it was behind
	Unstored       bool             `json:"unstored,omitempty"`
	At             int64            `json:"at,omitempty"`      // the seq as of which it read
	Child          string           `json:"child,omitempty"`   // the context that its delegate runs in
	Thought        plan.Values      `json:"thought,omitempty"` // what a latent call without a path thought: call and output
	Given          plan.Values      `json:"given,omitempty"`   // of an anonymous delegate's call: what its activity gave back
	Retry          bool             `json:"retry,omitempty"`   // its delegate's failed calls run again
	NotIdempotent  bool             `json:"once,omitempty"`    // it has begun, and its activity must not run twice
	Before         int64            `json:"before,omitempty"`  // of a call that runs again: the seq as of which it reads what does not
	SupersededUpTo int64            `json:"again,omitempty"`   // of such a call, and of one that is tried again: the seq up to which what it came to counts no more
	Hold           *Hold            `json:"hold,omitempty"`    // of a call that is or was held for a person
}

// Entry is the record as the journal has it, which knows the context.
func (r Record) Entry() store.Entry {
	r.Context = ""
	return store.Entry{Call: r.Call, Event: string(r.Status), Data: r.JSON()}
}

// JSON is the record as encoding/json writes it.
func (r *Record) JSON() string { return string(r.AppendJSON(nil)) }

// AppendJSON appends the record to b. One or two are written for each call, so it is done
// by hand.
func (r *Record) AppendJSON(b []byte) []byte {
	b = store.AppendString(append(b, `{"call":`...), r.Call)
	b = appendText(b, `,"context":`, r.Context)
	b = appendNumber(b, `,"tick":`, int64(r.Tick))
	b = appendNumber(b, `,"position":`, int64(r.Position))
	b = store.AppendString(append(b, `,"tool":`...), r.Tool)
	b = store.AppendString(append(b, `,"status":`...), string(r.Status))
	b = appendText(b, `,"instance":`, r.Instance)
	b = appendNumber(b, `,"attempts":`, int64(r.Attempts))
	b = appendText(b, `,"started":`, r.Started)
	b = store.AppendJSON(append(b, `,"duration_ms":`...), r.Duration)
	if len(r.Reads) > 0 {
		b = appendReads(append(b, `,"reads":`...), r.Reads)
	}
	if len(r.Writes) > 0 {
		b = store.AppendJSON(append(b, `,"writes":`...), r.Writes)
	}
	b = appendText(b, `,"script":`, r.Script)
	b = appendText(b, `,"script_sha256":`, r.SHA256)
	b = appendText(b, `,"generation":`, r.Generation)
	b = appendValues(b, `,"error":`, r.Error)
	b = appendValues(b, `,"handled":`, r.Handled)
	if r.Rests {
		b = append(b, `,"rests":true`...)
	}
	b = appendText(b, `,"retry_at":`, r.RetryAt)
	if r.MaxTries != 0 {
		b = appendNumber(b, `,"max_attempts":`, int64(r.MaxTries))
	}
	if len(r.WaitingOn) > 0 {
		b = store.AppendJSON(append(b, `,"waiting_on":`...), r.WaitingOn)
	}
	b = appendText(b, `,"reason":`, r.Reason)
	if r.Unstored {
		b = append(b, `,"unstored":true`...)
	}
	if r.At != 0 {
		b = appendNumber(b, `,"at":`, r.At)
	}
	b = appendText(b, `,"child":`, r.Child)
	b = appendValues(b, `,"thought":`, r.Thought)
	b = appendValues(b, `,"given":`, r.Given)
	if r.Retry {
		b = append(b, `,"retry":true`...)
	}
	if r.NotIdempotent {
		b = append(b, `,"once":true`...)
	}
	if r.Before != 0 {
		b = appendNumber(b, `,"before":`, r.Before)
	}
	if r.SupersededUpTo != 0 {
		b = appendNumber(b, `,"again":`, r.SupersededUpTo)
	}
	if r.Hold != nil {
		b = store.AppendJSON(append(b, `,"hold":`...), r.Hold)
	}
	return append(b, '}')
}

func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return store.AppendString(append(b, name...), text)
}

func appendNumber(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

func appendValues(b []byte, name string, v plan.Values) []byte {
	if len(v) == 0 {
		return b
	}
	return store.AppendJSON(append(b, name...), map[string]any(v))
}

func appendReads(b []byte, reads map[string]int64) []byte {
	b = append(b, '{')
	for i, ref := range jsonvalue.SortedKeys(reads) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(store.AppendString(b, ref), ':'), reads[ref], 10)
	}
	return append(b, '}')
}

// Records gives the calls of a context as they stand, in the order of their
// plans, those that have not begun among them.
func (c Context) Records(ctx context.Context) ([]Record, error) {
	return c.RecordsAt(ctx, 0)
}

// RecordsAt gives them as they stood when the context had come to a seq; 0 is
// now.
func (c Context) RecordsAt(ctx context.Context, at int64) ([]Record, error) {
	return c.RecordsFrom(ctx, 0, 0, at)
}

// RecordsFrom gives those of a tick and later ones, of which the journal tells behind a
// position.
func (c Context) RecordsFrom(ctx context.Context, tick int, n, at int64) ([]Record, error) {
	if err := store.CheckStoredContext(c.Name); err != nil { // as for the last run
		return nil, err
	}
	var all []Record
	place := map[string]int{}
	put := func(r Record) {
		r.Context = c.Name
		if at, ok := place[r.Call]; ok {
			all[at] = r
			return
		}
		place[r.Call] = len(all)
		all = append(all, r)
	}
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, After: n}) {
		if err != nil {
			return nil, err
		}
		if at > 0 && entry.Seq > at {
			break
		}
		switch {
		case entry.Event == EventPlan:
			planned, err := c.plannedCalls(ctx, entry)
			if err != nil {
				return nil, err
			}
			for _, r := range planned {
				put(r)
			}
		case entry.Call != "":
			r, err := ReadRecord(entry)
			if err != nil {
				return nil, err
			}
			at, ok := place[r.Call]
			if !ok && r.Tick < tick { // a fire-and-forget call may outlast its tick
				continue
			}
			if !ok {
				return nil, damaged(entry, "is about call %s, which no plan of the context has", r.Call)
			}
			if r.Status == Ready && all[at].Status != Held {
				continue // a second decision: the first counts
			}
			put(r)
		}
	}
	return all, nil
}

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

// plannedCalls gives a plan's calls before anything has happened to them.
func (c Context) plannedCalls(ctx context.Context, entry store.Entry) ([]Record, error) {
	plan, err := ReadPlanEvent(entry)
	if err != nil {
		return nil, err
	}
	if plan.Seq == 0 {
		return nil, nil
	}
	calls, err := c.PlanMessage(ctx, plan.Seq)
	if err != nil {
		return nil, err
	}
	records := make([]Record, len(calls))
	for i, call := range calls {
		object, _ := call.(map[string]any)
		tool, _ := object["_tool"].(string)
		instance, _ := object["_instance"].(string)
		records[i] = Record{Call: CallID(plan.Tick, i+1), Tick: plan.Tick, Position: i + 1, Tool: tool, Instance: instance, Status: Blocked}
	}
	return records, nil
}

func CallID(tick, position int) string { return fmt.Sprintf("%d.%d", tick, position) }

// PlanMessage reads the calls of the plan message at a seq.
func (c Context) PlanMessage(ctx context.Context, seq int64) ([]any, error) {
	m, err := c.MessageAt(ctx, seq)
	if err != nil {
		return nil, err
	}
	if m != nil && m.Type == store.TypePlan {
		if calls, ok := m.Data.([]any); ok {
			return calls, nil
		}
	}
	return nil, &DamagedError{c.Name, fmt.Sprintf("message %d of its log is not the plan that it tells of", seq)}
}

// MessageAt reads the message at a seq, nil where there is none.
func (c Context) MessageAt(ctx context.Context, seq int64) (*store.Message, error) {
	for m, err := range c.Log.Messages(ctx, store.Filter{Context: c.Name, After: seq - 1, At: seq}) {
		return m, err
	}
	return nil, nil
}
