package journal

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"obelus/engine/plan"
	"obelus/store"
)

// NewestSeq returns the greatest of the seqs of the messages that a value is made of, 0 without
// any. They need not be sorted: an instance's own messages come before the global ones.
func NewestSeq(from []int64) int64 {
	if len(from) == 0 {
		return 0
	}
	return slices.Max(from)
}

// Decisions about a held call.
const (
	Approved = "approved"
	Rejected = "rejected"
)

// Who names the person or program that decided (protocol §7, Decisions have a name).
type Who struct {
	By string `json:"by,omitempty"` // as the host knows them: a login name, a token
	// As they called themselves, where the host can't tell.
	Claimed string `json:"claimed,omitempty"`
}

// longestName bounds each of the two names, in bytes.
const longestName = 200

// Check refuses names that are too long, or that would move a terminal's cursor.
func (w Who) Check() error {
	for _, name := range []string{w.By, w.Claimed} {
		switch {
		case len(name) > longestName:
			return fmt.Errorf("the name of who decides has %d bytes: it may have %d", len(name), longestName)
		case strings.ContainsFunc(name, unicode.IsControl):
			return fmt.Errorf("the name of who decides, %q, has a control character in it", name)
		}
	}
	return nil
}

// Name returns the name for people.
func (w Who) Name() string {
	switch {
	case w.By == "":
		return "a person"
	case w.Claimed != "":
		return w.Claimed + " (" + w.By + ")"
	}
	return w.By
}

// Hold is a held call as shown to a person, and the decision about it. The arguments shown are
// those that run.
type Hold struct {
	Since     string      `json:"since"`
	Arguments plan.Values `json:"arguments"`           // its parameters, resolved
	Scopes    []string    `json:"scopes,omitempty"`    // its scopes
	Granted   plan.Values `json:"granted,omitempty"`   // values that the scopes grant, by kind
	Decision  string      `json:"decision,omitempty"`  // Approved, Rejected, or empty for none yet
	Reason    string      `json:"reason,omitempty"`    // of a rejection
	Corrected []string    `json:"corrected,omitempty"` // arguments that the person changed
	Who                   // has decided
}

// Decision is a person's decision about a held call.
type Decision struct {
	Context   string
	Call      string         // "1.2"
	Reject    bool           // it is not to run
	Reason    string         // of a rejection
	Arguments map[string]any // of an approval: all of them, as corrected; nil as they were shown
	Who                      // decides
}

// Word is the decision: [Approved] or [Rejected].
func (d *Decision) Word() string {
	if d.Reject {
		return Rejected
	}
	return Approved
}

// CorrectionError is a correction, or a result that a person gives, that the call's tool
// does not take.
type CorrectionError struct {
	Call string
	Err  error
}

func (e *CorrectionError) Error() string { return "call " + e.Call + ": " + e.Err.Error() }

// Class implements the interface of [store.ClassOf].
func (e *CorrectionError) Class() store.Class { return store.Refused }

func (e *CorrectionError) Unwrap() error { return e.Err }

// Holds lists the calls that are held in a context and in the contexts of its delegates. Delegates
// of the context that it was forked from do not count.
func (c Context) Holds(ctx context.Context) ([]Record, error) {
	records, err := c.Records(ctx)
	if err != nil {
		return nil, err
	}
	return c.heldAmong(ctx, records)
}

// heldAmong is [Context.Holds] of a context whose records are known.
func (c Context) heldAmong(ctx context.Context, records []Record) ([]Record, error) {
	var all []Record
	for _, r := range records {
		if r.Status == Held {
			all = append(all, r)
		}
		child, err := c.OwnChild(ctx, &r)
		if err != nil {
			return nil, err
		}
		if child != "" {
			inside, err := c.Sibling(child).Holds(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, inside...)
		}
	}
	return all, nil
}

// HeldCall finds a held call by its number in a context, or else in its delegates. A call of
// the context itself that was held and decided about takes precedence, so that a second decision
// does not reach a delegate's call. Its error is a [*NoSuchCallError] where none is held, or
// several delegates hold one.
func (c Context) HeldCall(ctx context.Context, call string) (Record, error) {
	records, err := c.Records(ctx)
	if err != nil {
		return Record{}, err
	}
	var found []Record
	own := slices.IndexFunc(records, func(r Record) bool { return r.Call == call })
	switch {
	case own >= 0 && records[own].Hold != nil:
		return records[own], records[own].Decidable()
	case own >= 0:
		err = records[own].Decidable()
	default:
		err = &NoSuchCallError{Message: fmt.Sprintf("no call %q in context %s", call, c.Name), Absent: true}
	}
	held, wrong := c.heldAmong(ctx, records)
	if wrong != nil {
		return Record{}, wrong
	}
	var contexts []string
	for _, r := range held {
		if r.Call == call {
			found, contexts = append(found, r), append(contexts, r.Context)
		}
	}
	switch len(found) {
	case 0:
		return Record{}, err
	case 1:
		return found[0], nil
	}
	return Record{}, SeveralContexts(fmt.Sprintf("call %s is held by %d delegates", call, len(found)), contexts)
}

// Decidable refuses a call about which there is nothing to decide.
func (r *Record) Decidable() error {
	if r.Status == Held && r.Hold != nil {
		return nil
	}
	if h := r.Hold; h != nil && h.Decision != "" {
		return &NoSuchCallError{Message: fmt.Sprintf("call %s was %s by %s already: that decision counts", r.Call, h.Decision, h.Name())}
	}
	return &NoSuchCallError{Message: fmt.Sprintf("call %s is %s: only one that is held can be approved or rejected", r.Call, r.Status)}
}

// SeveralContexts returns a [*NoSuchCallError] for a decision that may be meant for any of several
// contexts, with those as its hint.
func SeveralContexts(what string, contexts []string) error {
	return &NoSuchCallError{Message: what, Hint: Hint{Contexts: contexts}}
}

// LazyPlan is a plan that waits to be released.
type LazyPlan struct {
	Context string `json:"context"`
	Plan    string `json:"plan"`
	Tick    int    `json:"tick"`
	Since   string `json:"since"`
}

// Lazy lists the plans that wait to be released, in a context and in its delegates' contexts.
func (c Context) Lazy(ctx context.Context) ([]LazyPlan, error) {
	last, err := c.LastRun(ctx)
	if err != nil {
		return nil, err
	}
	if last.Held {
		return []LazyPlan{{c.Name, last.Plan, last.Tick, store.FormatDate(last.began)}}, nil
	}
	return c.LazyInside(ctx)
}

// LazyInside is [Context.Lazy] of a context's delegates.
func (c Context) LazyInside(ctx context.Context) ([]LazyPlan, error) {
	records, err := c.Records(ctx)
	if err != nil {
		return nil, err
	}
	var all []LazyPlan
	for _, r := range records {
		child, err := c.OwnChild(ctx, &r)
		if err != nil {
			return nil, err
		}
		if child != "" {
			inside, err := c.Sibling(child).Lazy(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, inside...)
		}
	}
	return all, nil
}

// releaseEvent is a release of a plan. The first logs lack the tick.
type releaseEvent struct {
	Tick int `json:"tick,omitempty"`
	Who
}

// released reports whether the journal has a release of the run's newest plan up to a position, or
// with 0 anywhere. A release names the tick of its plan: a person who was shown the plan of an
// earlier tick may release it when this plan is recorded already, and that does not release this
// one.
func (r *Run) released(ctx context.Context, c Context, at int64) (bool, error) {
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, Event: eventRelease, After: r.After, At: at}) {
		if err != nil {
			return false, err
		}
		var of releaseEvent
		if entry.Data != "" {
			if err := json.Unmarshal([]byte(entry.Data), &of); err != nil {
				return false, unread(entry, err)
			}
		}
		if of.Tick == 0 || of.Tick == r.Tick {
			return true, nil
		}
	}
	return false, nil
}

// CutSum is the number of bytes of a digest that replaces the beginning of a name that would be too
// long, written in hex.
const CutSum = 16

// isCut reports whether a name may belong to a delegate's context whose parents' names were too
// long to be in it.
func isCut(name string) bool {
	sum, _, _ := strings.Cut(name, ".")
	_, err := hex.DecodeString(sum)
	return err == nil && hex.DecodedLen(len(sum)) == CutSum
}

// Unblamed returns the reason why a run failed, or "" if a failed call of its tick is the reason.
// The failure of a call never ends a run with a planner: the planner is asked again.
func Unblamed(why string, event PlanEvent, calls []Record) string {
	if !event.Planner && slices.ContainsFunc(calls, Record.Blamed) {
		return ""
	}
	return why
}

// Blamed reports whether the call makes its run fail.
func (r Record) Blamed() bool { return r.Status == Failed && !r.Unstored }

// ReportedFailure returns the call whose failure an error message reports, and the failure; both
// are empty if the message is about no call.
func ReportedFailure(m *store.Message) (call string, failure any) {
	if m.Kind != store.KindError {
		return "", nil
	}
	data, _ := m.Data.Value.(map[string]any)
	call, _ = data["call"].(string)
	return call, data["error"]
}

// IndexInTick returns the index in a tick, from 0, of a call such as "1.2"; ok is false if the call
// is not one of the tick.
func IndexInTick(tick int, call string) (i int, ok bool) {
	position, ok := strings.CutPrefix(call, strconv.Itoa(tick)+".")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(position)
	return n - 1, err == nil && n > 0
}

// TickOf names a tick.
type TickOf struct {
	Context string
	Tick    int
}

// Span is the time from a call's start to its settling. For a call that was refused or skipped both
// are the same; the zero Span is for one that did not settle.
type Span struct{ Began, Settled Position }

// Outcome returns the state of the run as an [Outcome]. records are all records of its context.
func (r *Run) Outcome(name string, records []Record) *Outcome {
	calls := slices.DeleteFunc(records, func(c Record) bool { return c.Tick != r.Tick })
	return &Outcome{Context: name, Status: r.Status, Output: r.Output, Error: Unblamed(r.Error, r.Event, calls), Stopped: r.Stopped, Calls: calls}
}

// LeftBehind reports whether the record is of a fire-and-forget call that has no outcome: it is at
// work, or was when its process ended.
func (r Record) LeftBehind() bool { return r.Status == Running && r.Unstored }

// DecisionEvent is a person's decision about a call that had failed, was in doubt or, in a
// fork, runs again.
type DecisionEvent struct {
	Call      string      `json:"call"`
	Decision  string      `json:"decision"` // retried, skipped, given or rerun
	Corrected plan.Values `json:"corrected,omitempty"`
	Who
}

// ReasonSkipped is the reason of a call that a person goes on without.
const ReasonSkipped = "skipped by a person"

// ReasonGiven is the reason of a call whose result a person gave.
const ReasonGiven = "its result was given by a person"

// IsWithin reports whether a context is another one, or is the context of a delegate in it, however
// deep. Their names show it, except names that were too long and had to be cut.
func (c Context) IsWithin(ctx context.Context, other string) (bool, error) {
	for range plan.MaxDepth + 1 {
		if c.Name == other || strings.HasPrefix(c.Name, other+".") {
			return true, nil
		}
		if !isCut(c.Name) {
			break
		}
		origin, ok, err := c.OriginOf(ctx)
		if err != nil || !ok || origin.Parent == "" {
			return false, err
		}
		c.Name = origin.Parent
	}
	return false, nil
}

// OriginOf returns the origin of the context; ok is false if there is no such context.
func (c Context) OriginOf(ctx context.Context) (origin store.Origin, ok bool, err error) {
	info, err := c.Log.Info(ctx, c.Name)
	if errors.Is(err, store.ErrNoContext) {
		return origin, false, nil
	}
	return info.Origin, err == nil, err
}

// Outcome is the end of a run, or its state. Its values are shared, like the values of a
// [plan.Invocation], and must not be changed.
type Outcome struct {
	// Empty where the run was stopped before its planner gave a first plan: nothing of it is in the
	// log.
	Context string
	Status  RunStatus
	Output  any    // null without one
	Error   string // why the run failed, where no single call is to blame
	// It was interrupted as its host stopped ([obelus/engine.ErrStopped]): a server resumes it.
	Stopped bool
	Calls   []Record   // of its last tick
	Lazy    *plan.Plan // the plan, where it is recorded and waits to be released
	// Calls that ran without the result of a call in [obelus/engine.Resume.Retry], and keep their
	// outcome.
	Stale []string
}

// NoSuchCallError names a call that does not exist, or whose status does not allow the request.
type NoSuchCallError struct {
	Message string
	Absent  bool // there is no such call at all
	Hint    Hint // how to reach what was asked for; may be zero
}

// Hint is advice that goes with an error. A program puts it into the words of its own commands.
type Hint struct {
	Fork     string   // fork this context, at At, and repeat the request in the fork
	At       int64    // the seq to fork at; 0 for the newest
	Contexts []string // repeat the request for one of these contexts
}

func (e *NoSuchCallError) Error() string { return e.Message }

// Class implements the interface of [store.ClassOf].
func (e *NoSuchCallError) Class() store.Class {
	if e.Absent {
		return store.NotFound
	}
	return store.Refused
}
