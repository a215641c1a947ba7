package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"obelus/engine/plan"
	"obelus/store"
)

// PlanDecision is a person's decision about a plan that waits for one (protocol §7, A plan is
// held).
type PlanDecision struct {
	Context string
	// Hash of the plan that the person was shown, as [PlanHash] has it; empty for the one that waits.
	Hash    string
	Reject  bool
	Reason  string         // of a rejection
	Set     map[string]any // corrections of an approval, by call and place: "1.2.amount"
	Without []string       // calls that an approval drops: "1.3"
	Who
}

// PlanDecisionEvent is a decision about the plan of a tick. The first logs have releases alone.
type PlanDecisionEvent struct {
	Tick     int    `json:"tick,omitempty"`     // 0 in the first logs
	Decision string `json:"decision,omitempty"` // [Rejected], or empty for a release
	Hash     string `json:"hash,omitempty"`     // of the plan
	Reason   string `json:"reason,omitempty"`   // of a rejection
	// Of a plan that was corrected: the seq of its message with the corrections; 0 for none.
	Seq     int64       `json:"seq,omitempty"`
	Shown   plan.Values `json:"shown,omitempty"`     // values before the corrections, by call and place
	Set     plan.Values `json:"corrected,omitempty"` // values of the corrections; null for a call that was dropped
	Without []string    `json:"without,omitempty"`   // calls that were dropped
	Who
}

// eventRelease is the journal's event of a [PlanDecisionEvent]: a person has decided about a plan.
const eventRelease = "release"

// Entry is the journal's entry of the event.
func (e PlanDecisionEvent) Entry() store.Entry {
	return store.Entry{Event: eventRelease, Data: string(store.EncodeJSON(e))}
}

// ReadPlanDecision decodes the data of a decision about a plan. Its error is a [*DamagedError].
func ReadPlanDecision(entry store.Entry) (e PlanDecisionEvent, err error) {
	if entry.Data == "" {
		return e, nil
	}
	if err := json.Unmarshal([]byte(entry.Data), &e); err != nil {
		return e, unread(entry, err)
	}
	return e, nil
}

// IsPlanDecision reports whether an entry is a decision about a plan.
func IsPlanDecision(entry store.Entry) bool { return entry.Event == eventRelease && entry.Call == "" }

// Word is the decision: [Approved] or [Rejected].
func (e *PlanDecisionEvent) Word() string {
	if e.Decision == Rejected {
		return Rejected
	}
	return Approved
}

// IsRejected reports whether a person has rejected the plan.
func (e *PlanEvent) IsRejected() bool { return e.Decision != nil && e.Decision.Decision == Rejected }

// Rejection returns the error of a tick whose plan a person has rejected.
func (e *PlanEvent) Rejection() error {
	return &plan.Failure{Fields: map[string]any{"code": Rejected, "message": "the plan was rejected: " + e.Decision.Reason}}
}

// RefusedInARow counts the newest plans that were refused or rejected, one after the other.
func RefusedInARow(plans []PlanEvent) (n int) {
	for _, e := range slices.Backward(plans) {
		if e.Refused == nil && !e.IsRejected() {
			break
		}
		n++
	}
	return n
}

// MessageSeq returns the seq of the message that has the plan as it runs: as a person corrected it,
// or as it was given; 0 for none.
func (e *PlanEvent) MessageSeq() int64 {
	if e.Decision != nil && e.Decision.Seq > 0 {
		return e.Decision.Seq
	}
	return e.Seq
}

// IsDropped reports whether a person has dropped a call of the plan, by its position.
func (e *PlanEvent) IsDropped(position int) bool {
	return e.Decision != nil && slices.Contains(e.Decision.Without, CallID(e.Tick, position))
}

// corrects reports whether a person has corrected a member of a call, by the call's position.
func (e *PlanEvent) corrects(position int, member string) bool {
	if e.Decision == nil {
		return false
	}
	_, ok := e.Decision.Set[CallID(e.Tick, position)+"."+member]
	return ok
}

// PlanHash identifies a plan that waits for a person: its context, its tick, its calls as written
// and its output.
func PlanHash(context string, e *PlanEvent, calls []any) string {
	sum := sha256.Sum256(store.EncodeJSON([]any{context, e.Tick, calls, string(e.Output)}))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// hashLength is the length of a [PlanHash]: people compare it by eye.
const hashLength = 12

// PlanDecision returns the newest decision about the plan of a tick that was made after a position
// of the journal; nil for none. A fork may have one of its own beside the one that it inherits. A
// decision names the tick of its plan: a person who was shown the plan of an earlier tick may have
// decided as this one was recorded.
func (c Context) PlanDecision(ctx context.Context, tick int, after int64) (*PlanDecisionEvent, error) {
	f := store.JournalFilter{Context: c.Name, Event: eventRelease, After: after, Newest: true}
	for entry, err := range c.Log.Journal(ctx, f) {
		if err != nil {
			return nil, err
		}
		e, err := ReadPlanDecision(entry)
		if err != nil {
			return nil, err
		}
		if e.Tick == 0 || e.Tick == tick {
			return &e, nil
		}
	}
	return nil, nil
}

// readDecision reads what was decided about the run's newest plan, which is lazy, and reports
// whether it is held for a person. A plan that was corrected or rejected before the context was
// forked stays so; whether it may run is decided in the fork.
func (r *Run) readDecision(ctx context.Context, c Context) (held bool, err error) {
	if r.Event.Decision, err = c.PlanDecision(ctx, r.Tick, r.After); err != nil || r.Event.IsRejected() {
		return false, err
	}
	forked, err := c.forkedAt(ctx)
	if err != nil || forked < r.After {
		return err == nil && r.Event.Decision == nil && !r.Event.Released, err
	}
	own, err := c.PlanDecision(ctx, r.Tick, forked)
	return own == nil, err
}

// Decide records a decision about the run's newest plan, which waits for one, with the messages
// that belong to it and the calls that it settles. Its error is a [*NoSuchCallError] where the plan
// waits no more, as another decision was first.
func (r *Run) Decide(ctx context.Context, log store.ReadAppender, name string, decision PlanDecisionEvent, messages []store.Message, settled []Record) error {
	c := In(log, name)
	decision.Tick = r.Tick
	return Amend(ctx, c, func(n int64) error {
		last, err := c.LastRun(ctx)
		if err != nil {
			return err
		}
		if last.Tick != r.Tick || !last.Held {
			return r.noLongerHeld(ctx, c)
		}
		// Nothing may come between what was read and the decision, also where the run is at work.
		b := store.Batch{Context: name, ExpectSeq: store.AnySeq, ExpectN: n, Messages: messages}
		if len(messages) > 0 {
			head, err := log.Head(ctx, name)
			if err != nil {
				return err
			}
			b.ExpectSeq, decision.Seq = head, head+int64(len(messages))
		}
		b.Journal = []store.Entry{decision.Entry()}
		for _, settled := range settled {
			b.Journal = append(b.Journal, settled.Entry())
		}
		records, err := c.Records(ctx)
		if err != nil {
			return err
		}
		last.Held = false
		standing := last.Standing(ReplaceRecords(records, settled))
		_, err = appendInput(ctx, log, b, n, &standing)
		return err
	})
}

// noLongerHeld returns the error of a decision about the run's plan, which waits for none any more.
func (r *Run) noLongerHeld(ctx context.Context, c Context) error {
	decision, err := c.PlanDecision(ctx, r.Tick, r.After)
	if err != nil {
		return err
	}
	if decision == nil {
		return &NoSuchCallError{Message: fmt.Sprintf("the plan of tick %d of context %s waits for nobody any more", r.Tick, c.Name)}
	}
	return &NoSuchCallError{Message: fmt.Sprintf("the plan of context %s has been %s already", c.Name, decision.Word())}
}
