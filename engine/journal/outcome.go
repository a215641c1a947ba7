package journal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/plan"
	"obelus/store"
)

// Outcome is the end of a run, or its state. Its values are shared, like the values of a
// [plan.Invocation], and must not be changed.
type Outcome struct {
	// Empty where the run was stopped before its planner gave a first plan: nothing of it is in the
	// log.
	Context string
	Status  RunStatus
	Output  any          // null without one
	Choice  *plan.Choice // of a delegate that has chosen between the alternatives of its call
	Error   string       // why the run failed, where no single call is to blame
	// It was interrupted as its host stopped ([obelus/engine.ErrStopped]): a server resumes it.
	Stopped bool
	First   int        // its first tick, 0 if it is not known
	Tick    int        // its last tick, 0 if it is not known
	Calls   []Record   // of its last tick
	Lazy    *plan.Plan // the plan, where it is recorded and waits to be released

	// Background is the number of calls that have not ended, and for which the run does not wait
	// (protocol §5, Fire and forget): they are at work, interrupted or in doubt.
	Background int

	// Calls that ran without the result of a call in [obelus/engine.Resume.Retry], and keep their
	// outcome.
	Stale []string
}

// Outcome returns the state of the run as an [Outcome]. records are all records of its context.
func (r *Run) Outcome(name string, records []Record) *Outcome {
	background := 0
	if r.Detached && r.Status.HasBackground() {
		background = CountBackground(records)
	}
	calls := slices.DeleteFunc(records, func(c Record) bool { return c.Tick != r.Tick })
	return &Outcome{Background: background, Context: name, Status: r.Status, Output: r.Output, Choice: r.Event.Choice, Error: Unblamed(r.Error, r.Event, calls), Stopped: r.Stopped, First: r.Event.First, Tick: r.Tick, Calls: calls}
}

// Unblamed returns the reason why a run failed, or "" if a failed call of its tick is the reason.
// The failure of a call never ends a run with a planner: the planner is asked again.
func Unblamed(why string, event PlanEvent, calls []Record) string {
	if !event.Planner && slices.ContainsFunc(calls, Record.Blamed) {
		return ""
	}
	return why
}

// CauseOf says in a line why a run failed by its calls: the failure of the first one, and how many
// there are besides. It is empty where none is to blame.
func CauseOf(calls []Record) (cause string) {
	others := 0
	for i := range calls {
		switch {
		case !calls[i].Blamed():
		case cause == "":
			cause = fmt.Sprintf("call %s (%s): %s", calls[i].Call, calls[i].Tool, calls[i].FailureText())
		default:
			others++
		}
	}
	if others > 0 {
		cause += fmt.Sprintf(", and %d more", others)
	}
	return cause
}

// FailureText returns the message of the call's failure, or all that it says without one.
func (r *Record) FailureText() string {
	if text, ok := r.Error["message"].(string); ok {
		return text
	}
	return string(store.EncodeJSON(r.Error))
}

// HandledText says beside the call's outcome why it failed, or why a person rejected it, where the
// plan handled that.
func (r *Record) HandledText() string {
	message, _ := r.Handled["message"].(string)
	if r.Outcome() == OutcomeHandled {
		return "failed: " + message
	}
	return message
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

// NewestSeq returns the greatest of the seqs of the messages that a value is made of, 0 without
// any. They need not be sorted: an instance's own messages come before the global ones.
func NewestSeq(from []int64) int64 {
	if len(from) == 0 {
		return 0
	}
	return slices.Max(from)
}

// IndexInTick returns the index in a tick, from 0, of a call such as "1.2"; ok is false if the call
// is not one of the tick.
func IndexInTick(tick int, call string) (i int, ok bool) {
	of, i := PlaceOf(call)
	return i, of == tick
}

// PlaceOf returns the tick of a call such as "1.2", and its index there, from 0; the tick is 0
// where that is the name of no call.
func PlaceOf(call string) (tick, i int) {
	before, after, _ := strings.Cut(call, ".")
	tick, wrong := strconv.Atoi(before)
	position, err := strconv.Atoi(after)
	if wrong != nil || err != nil || tick < 1 || position < 1 {
		return 0, 0
	}
	return tick, position - 1
}

// TickOf names a tick.
type TickOf struct {
	Context string
	Tick    int
}

// CountCut counts the attempt in which the process of a call ended that is running by its record. A
// delegate's was counted when it began.
func (r *Record) CountCut() {
	if r.Status == Running && !r.Rests && r.Child == "" {
		r.Attempts++
	}
}

// LeftBehind reports whether the record is of a background call that is at work, or was when its
// process ended: a server goes on with it.
func (r Record) LeftBehind() bool { return r.Status == Running && r.Unstored }

// InBackground reports whether the record is of a background call that has not ended: a
// fire-and-forget call that has started, for which no run waits. It may be interrupted or in doubt.
func (r Record) InBackground() bool {
	switch r.Status {
	case Running, Interrupted, InDoubt:
		return r.Unstored
	}
	return false
}

// CountBackground returns the number of calls in the background.
func CountBackground(records []Record) (n int) {
	for i := range records {
		if records[i].InBackground() {
			n++
		}
	}
	return n
}
