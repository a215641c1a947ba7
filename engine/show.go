package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"obelus/store"
)

// Summary is a context as lists show it (surface.md, contexts).
type Summary struct {
	Context  string    `json:"context"`
	Status   RunStatus `json:"status,omitempty"`  // of its newest run
	Stopped  bool      `json:"stopped,omitempty"` // that was interrupted since its host went or died: a server goes on with it
	Plan     string    `json:"plan,omitempty"`
	Parent   string    `json:"parent,omitempty"` // whose delegate it is, or which it was forked from
	At       any       `json:"at,omitempty"`     // the parent's call, or for a fork the seq
	Messages int64     `json:"messages"`
	Bytes    int64     `json:"bytes"` // of JSON that the messages hold
	Created  string    `json:"created"`
	Updated  string    `json:"updated"`
	Error    string    `json:"error,omitempty"` // why its newest run can't be told
}

// Summarize describes a context. Beside a [*DamagedError] it tells what it can,
// so that one damaged context need not hide the others.
func Summarize(ctx context.Context, log store.Log, info store.ContextInfo) (Summary, error) {
	run, err := StandingRun(ctx, log, info.Context)
	var damaged *DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return Summary{}, err
	}
	bytes, sizeErr := log.Size(ctx, info.Context)
	s := Summary{
		Context: info.Context, Status: run.Status, Stopped: run.Stopped, Plan: run.Plan,
		Messages: info.Messages, Bytes: bytes, Created: store.FormatDate(info.Created), Updated: store.FormatDate(info.Updated),
	}
	if damaged != nil {
		s.Status, s.Error = "", damaged.Error()
	}
	switch o := info.Origin; {
	case o.Parent != "":
		s.Parent, s.At = o.Parent, o.Call
	case o.Fork != "":
		s.Parent, s.At = o.Fork, o.At
	}
	return s, cmp.Or(sizeErr, err)
}

// Approval is a held call as it is shown to who decides about it (surface.md,
// approvals).
type Approval struct {
	Context   string   `json:"context"`
	Call      string   `json:"call"`
	Tool      string   `json:"tool"`
	Instance  string   `json:"instance,omitempty"`
	Arguments Values   `json:"arguments"`
	Scopes    []string `json:"scopes"`
	Granted   Values   `json:"granted,omitempty"` // what the scopes let it see
	Since     string   `json:"since"`
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
		r, err := readRecord(entry)
		r.Context = entry.Context
		return r, err
	case entry.Event == eventPlan:
		plan, err := readPlanEvent(entry)
		if err != nil {
			return nil, err
		}
		return RunChange{Context: entry.Context, Status: RunRunning, Plan: plan.Plan, Tick: plan.Tick}, nil
	case entry.Event == eventRun:
		end, output, err := readRunEvent(entry)
		if end.Drains {
			return nil, err
		}
		change := RunChange{Context: entry.Context, Status: end.Status, Tick: end.Tick, Output: output, Error: end.Error, Stopped: end.Stopped}
		if end.Status == runContinued {
			change.Status = RunRunning
		}
		return change, err
	}
	return nil, nil
}

func readPlanEvent(entry store.Entry) (plan planEvent, err error) {
	if err := json.Unmarshal([]byte(entry.Data), &plan); err != nil {
		return plan, unread(entry, err)
	}
	plan.First = cmp.Or(plan.First, plan.Tick) // the first logs don't say: they have no run of several ticks
	return plan, nil
}

// readRunEvent reads how a tick ended. The output's numbers keep their text.
func readRunEvent(entry store.Entry) (end runEvent, output any, err error) {
	var raw struct {
		runEvent
		Output json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal([]byte(entry.Data), &raw); err != nil {
		return end, nil, unread(entry, err)
	}
	if raw.Status != runContinued && !slices.Contains(runStatuses, raw.Status) {
		return end, nil, damaged(entry, "has the status %q, which no run has", raw.Status)
	}
	if raw.Status == RunCancelled && raw.Stopped { // as the first logs have it
		raw.Status = RunInterrupted
	}
	if output, err = store.DecodeWithin(raw.Output, journalDepth); err != nil {
		err = unread(entry, err)
	}
	return raw.runEvent, output, err
}

// Wakes tells whether an entry is something that a run may have come to a halt
// for: messages from outside, or a decision.
func Wakes(entry store.Entry) bool {
	if entry.Call != "" {
		return entry.Event == string(Ready)
	}
	return entry.Event == eventAppend || entry.Event == eventRelease
}

// Ended tells whether an entry is the end of a run, or of what its host could do for it: the
// context may be a delegate's, for which the call that it belongs to waits.
func Ended(entry store.Entry) bool {
	if entry.Event != eventRun || entry.Call != "" {
		return false
	}
	end, _, err := readRunEvent(entry)
	return err == nil && (end.Status == RunDone || end.Status == RunFailed || end.Stopped)
}

// Woken tells whether something has come to a context which its run may have come
// to a halt for, and which nobody has taken up: it came since the run halted, or is a
// decision that came just then. So it tells of what has come to a delegate that it waits
// for; and of one that ended while somebody else was at it, or that nobody is at any more.
func Woken(ctx context.Context, log store.Log, name string) (bool, error) {
	return woken(ctx, log, name, true)
}

// Freed tells whether a run waits for a delegate that ended while somebody else was at it,
// or that nobody is at any more.
func Freed(ctx context.Context, log store.Log, name string) (bool, error) {
	return woken(ctx, log, name, false)
}

// woken is Freed, and with what has come besides Woken.
func woken(ctx context.Context, log store.Log, name string, besides bool) (bool, error) {
	last, err := LastRun(ctx, log, name)
	if err != nil || last.Status != RunWaiting {
		return false, err
	}
	records, err := Records(ctx, log, name)
	if err != nil {
		return false, err
	}
	if besides {
		if came, err := last.came(ctx, log, name, records); came || err != nil {
			return came, err
		}
	}
	for i := range records {
		if r := &records[i]; r.Status == Waiting {
			if freed, err := freedInside(ctx, log, name, r, besides); freed || err != nil {
				return freed, err
			}
		}
	}
	return false, nil
}

// came tells of a run that has halted whether messages or decisions have come.
func (r *Run) came(ctx context.Context, log store.Log, name string, records []Record) (bool, error) {
	halt, _, err := store.Newest(ctx, log, store.JournalFilter{Context: name, Event: eventRun})
	if err != nil {
		return false, err
	}
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, After: halt.N}) {
		if err != nil || Wakes(entry) {
			return err == nil, err
		}
	}
	decided := func(c Record) bool { return c.Status == Ready }
	begun := func(c Record) bool { return c.Tick == r.Tick && c.Status != Blocked }
	released := r.plan.Mode == modeLazy && !r.Held && !slices.ContainsFunc(records, begun)
	return released || slices.ContainsFunc(records, decided), nil
}

// freedInside is woken for a call that waits, if that is for its delegate. Whoever is at
// that takes up what comes.
func freedInside(ctx context.Context, log store.Log, name string, r *Record, besides bool) (bool, error) {
	child, err := ownChild(ctx, log, name, r)
	if err != nil || child == "" {
		return false, err
	}
	last, err := LastRun(ctx, log, child)
	if err != nil || last.Unwanted() || last.Tick == 0 {
		return false, err
	}
	if !last.plan.ofDelegate() || last.Status.Finished() {
		return true, nil
	}
	if holder, err := log.Holder(ctx, child); err != nil || holder != "" {
		return false, err
	}
	if last.Status == RunWaiting {
		return woken(ctx, log, child, besides)
	}
	return true, nil
}

// LeftBehind tells whether the run of a context that has come to its end or to a halt
// has fire-and-forget calls which are still at work, or were when its process died:
// resuming it records that.
func (r *Run) LeftBehind(ctx context.Context, log store.Log, name string) (bool, error) {
	if !r.behind {
		return false, nil
	}
	records, err := Records(ctx, log, name)
	return slices.ContainsFunc(records, Record.leftBehind), err
}

// FailedBefore lists the calls that failed in the rounds of a context's newest run before the
// last: its planner went on whatever became of them, so that the run does not fail of it.
func FailedBefore(ctx context.Context, log store.Log, name string) ([]Record, error) {
	last, err := LastRun(ctx, log, name)
	if err != nil || last.plan.First >= last.Tick {
		return nil, err
	}
	records, err := Records(ctx, log, name)
	return slices.DeleteFunc(records, func(r Record) bool {
		return !r.blamed() || r.Tick < last.plan.First || r.Tick >= last.Tick
	}), err
}

// Root is the context at the top, whose run the newest run of a context is part of:
// itself, if it is no delegate's, or if a plan was run there after the delegate's.
func Root(ctx context.Context, log store.Log, name string) (string, error) {
	for range MaxDepth + 1 {
		origin, ok, err := originOf(ctx, log, name)
		if err != nil || !ok || origin.Parent == "" {
			return name, err
		}
		if last, err := LastRun(ctx, log, name); err != nil || !last.plan.ofDelegate() {
			return name, err
		}
		name = origin.Parent
	}
	return name, nil
}

// ParseRef reads a reference as people type it: without a dagger if it is a
// plain path, and an expression that does not begin with one as it is. Its
// error is a [*RefError], or that of [ParseExpr].
func ParseRef(text string) (*Expr, error) {
	if !strings.Contains(text, store.Dagger) {
		if _, err := store.ParsePath(store.Dagger + text); err != nil {
			return nil, &RefError{err}
		}
		return ParseExpr(store.Dagger + text)
	}
	if !strings.HasPrefix(text, store.Dagger) {
		text = store.Dagger + "(" + text + ")"
	}
	return ParseExpr(text)
}

// RefError is a reference that can't be read.
type RefError struct{ Err error }

func (e *RefError) Error() string {
	return e.Err.Error() + ` (a key that is no word is quoted: state["first-name"]; in an expression references begin with †)`
}

func (e *RefError) Unwrap() error { return e.Err }

// Get evaluates an expression over a context, as an instance sees it, as of a
// seq or, with 0, as of now. What is missing is told by a [*MissingError].
func Get(ctx context.Context, log store.Log, name string, e *Expr, at int64, instance string) (any, error) {
	v, _, err := get(ctx, log, name, e, at, instance)
	return v, err
}

// get gives beside the value the paths that it was made of.
func get(ctx context.Context, log store.Log, name string, e *Expr, at int64, instance string) (v any, found []store.Path, err error) {
	if _, err := log.Head(ctx, name); err != nil {
		return nil, nil, err
	}
	v, missing, err := e.Eval(ctx, finding(ctx, store.Resolver{Log: log, Context: name, At: at}, instance, &found))
	if err == nil && missing != nil {
		err = &MissingError{name, missing}
	}
	return v, found, err
}

// finding looks paths up, and notes once each that is there.
func finding(ctx context.Context, r store.Resolver, instance string, found *[]store.Path) Lookup {
	return func(path store.Path) (any, bool, bool, error) {
		resolved, err := r.Resolve(ctx, path, instance)
		if resolved.Exists && !slices.Contains(*found, path) {
			*found = append(*found, path)
		}
		return resolved.Value, resolved.Exists, false, err
	}
}
