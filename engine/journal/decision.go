package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"obelus/engine/plan"
	"obelus/store"
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

// Decisions about a held call.
const (
	Approved = "approved"
	Rejected = "rejected"
)

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
	// Of arguments that the person changed: what they were, and the references that had given that.
	Was  plan.Values       `json:"was,omitempty"`
	Refs map[string]string `json:"was_refs,omitempty"`

	Reasoning string `json:"reasoning,omitempty"` // the call's _reasoningForCall
	Who              // has decided
}

// Decisions by which a call runs again.
const (
	Retried = "retried"
	Rerun   = "rerun"
)

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

// DecisionEvent is a person's decision about a call that had failed, was in doubt or, in a
// fork, runs again.
type DecisionEvent struct {
	Call      string      `json:"call"`
	Decision  string      `json:"decision"` // Retried, Rerun, or given or skipped, which settle the call
	Corrected plan.Values `json:"corrected,omitempty"`
	Who
}

// Entry is the journal's entry of the event.
func (e DecisionEvent) Entry() store.Entry {
	return store.Entry{Event: EventDecision, Data: string(store.EncodeJSON(e))}
}

// ReadDecisionEvent decodes the data of a decision event. Its error is a [*DamagedError].
func ReadDecisionEvent(entry store.Entry) (e DecisionEvent, err error) {
	if err := json.Unmarshal([]byte(entry.Data), &e); err != nil {
		return e, unread(entry, err)
	}
	return e, nil
}

// ReasonSkipped is the reason of a call that a person goes on without.
const ReasonSkipped = "skipped by a person"

// ReasonOfOrigin is the reason of a call of a fork that is skipped there: it was in the background
// as the context was forked.
const ReasonOfOrigin = "it goes on in the context that this one was forked from"

// IsLeftOut reports whether the call was skipped by a decision, and not for what it depends on.
func (r Record) IsLeftOut() bool {
	if r.Status != Skipped {
		return false
	}
	switch r.Reason {
	case ReasonSkipped, ReasonOfOrigin, ReasonPlanRejected:
		return true
	}
	return strings.HasPrefix(r.Reason, ReasonDropped)
}

// Reasons of calls that a decision about their plan skips. The second is followed by who decided.
const (
	ReasonPlanRejected = "its plan was rejected"
	ReasonDropped      = "dropped from the plan by "
)

// ReasonGiven is the reason of a call whose result a person gave.
const ReasonGiven = "its result was given by a person"

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
		return []LazyPlan{last.LazyPlan(c.Name)}, nil
	}
	return c.LazyInside(ctx)
}

// LazyPlan describes the run's newest plan, which waits to be released in a context.
func (r *Run) LazyPlan(context string) LazyPlan {
	return LazyPlan{context, r.Plan, r.Tick, store.FormatDate(r.began)}
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

// IsLazy reports whether the plan runs only once it is released, or would have if its run had not
// been started with its release.
func (e *PlanEvent) IsLazy() bool { return e.Mode == plan.ModeLazy || e.Released }
