package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"obelus/store"
)

// Decisions about a held call.
const (
	Approved = "approved"
	Rejected = "rejected"
)

// Who tells who has decided something (additions.md, "Decisions have a name").
type Who struct {
	By      string `json:"by,omitempty"`      // as the host knows them: a login name, a token
	Claimed string `json:"claimed,omitempty"` // as they called themselves, where the host can't tell
}

// longestName is how many bytes the names of who decides may have.
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

// Name is who, for people.
func (w Who) Name() string {
	switch {
	case w.By == "":
		return "a person"
	case w.Claimed != "":
		return w.Claimed + " (" + w.By + ")"
	}
	return w.By
}

// Hold is what a person is shown of a call that is held, and what was decided.
// What was shown is what runs.
type Hold struct {
	Since     string   `json:"since"`
	Arguments Values   `json:"arguments"`           // its parameters, resolved
	Scopes    []string `json:"scopes,omitempty"`    // that it has
	Granted   Values   `json:"granted,omitempty"`   // what they let it see, by kind
	Decision  string   `json:"decision,omitempty"`  // Approved, Rejected, or empty for none yet
	Reason    string   `json:"reason,omitempty"`    // of a rejection
	Corrected []string `json:"corrected,omitempty"` // arguments that the person changed
	Who                // has decided
}

// Decision is what a person decides about a held call.
type Decision struct {
	Context   string
	Call      string         // "1.2"
	Reject    bool           // it is not to run
	Reason    string         // of a rejection
	Arguments map[string]any // of an approval: all of them, as corrected; nil as they were shown
	Who                      // decides
}

// Word is what is decided: [Approved] or [Rejected].
func (d *Decision) Word() string {
	if d.Reject {
		return Rejected
	}
	return Approved
}

// Decide records a decision about a call that is held. Corrected arguments must
// fit the call's tool. Whoever runs the context, or resumes it, goes on from
// there. Its error is a [*NoSuchCallError] where the call is not held.
func (r *Runner) Decide(ctx context.Context, d Decision) error {
	p, err := r.within(ctx, d.Context)
	if err != nil {
		return err
	}
	r = p.runner
	records, err := Records(ctx, r.Log, d.Context)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(records, func(r Record) bool { return r.Call == d.Call })
	if i < 0 {
		return &NoSuchCallError{Message: fmt.Sprintf("no call %q in context %s", d.Call, d.Context), Absent: true}
	}
	record := records[i]
	if err := record.decidable(); err != nil {
		return err
	}
	hold := *record.Hold
	hold.Decision, hold.Who = d.Word(), d.Who
	if d.Reject {
		hold.Reason = cmp.Or(strings.TrimSpace(d.Reason), "rejected by a person")
	} else if d.Arguments != nil {
		if err := r.correct(ctx, record, &hold, d.Arguments); err != nil {
			return err
		}
	}
	record.Status, record.Hold = Ready, &hold
	entry := record.entry()
	entry.Date = r.now()
	appended, err := r.Log.Append(ctx, store.Batch{Context: d.Context, ExpectSeq: store.AnySeq, Journal: []store.Entry{entry}})
	if err != nil {
		return err
	}
	return r.first(ctx, d, appended.N)
}

// first tells whether a decision, recorded at a place in the journal, was the
// first about its hold: others may have decided at the same time, and the first
// counts.
func (r *Runner) first(ctx context.Context, d Decision, n int64) error {
	for entry, err := range r.Log.Journal(ctx, store.JournalFilter{Context: d.Context, Call: d.Call, Newest: true}) {
		if err != nil {
			return err
		}
		if entry.N >= n {
			continue
		}
		if entry.Event == string(Held) {
			return nil
		}
		record, err := readRecord(entry)
		if err != nil || record.Hold == nil {
			return cmp.Or(err, error(&NoSuchCallError{Message: fmt.Sprintf("somebody else has just decided about call %s: that decision counts", d.Call)}))
		}
		return &NoSuchCallError{Message: fmt.Sprintf("%s has just %s call %s: that decision counts", record.Hold.Name(), record.Hold.Decision, d.Call)}
	}
	return nil
}

// correct puts a person's arguments in place of those that were shown.
func (r *Runner) correct(ctx context.Context, record Record, hold *Hold, arguments map[string]any) error {
	last, err := LastRun(ctx, r.Log, record.Context)
	if err != nil {
		return err
	}
	registry, err := last.plan.contextTools(ctx, r.Log, record.Context, r.Registry)
	if err != nil {
		return err
	}
	brought, err := last.plan.tools()
	if err != nil {
		return err
	}
	if arguments, err = receivedObject(arguments, ""); err != nil {
		return &CorrectionError{record.Call, err}
	}
	tool, ok := (&planCompiler{}).tools(&Request{Tools: brought}, registry).Tool(record.Tool)
	if !ok {
		calls, err := planMessage(ctx, r.Log, record.Context, last.plan.Seq)
		if err != nil {
			return err
		}
		if i := record.Position - 1; record.Tick == last.Tick && i < len(calls) {
			given, _ := calls[i].(map[string]any)
			tool, ok = &Tool{Name: record.Tool}, namesDelegate(given) // which needs none
		}
	}
	if !ok {
		return &NoSuchCallError{Message: fmt.Sprintf("call %s: its tool %q is not registered any more, so that its arguments can't be checked", record.Call, record.Tool)}
	}
	if err := tool.check(); err != nil {
		return &NoSuchCallError{Message: fmt.Sprintf("call %s: its tool %q can't be used: %s", record.Call, record.Tool, err)}
	}
	if err := cmp.Or(tool.correctable(sortedKeys(arguments), hold.Arguments), tool.takes(arguments)); err != nil {
		return &CorrectionError{record.Call, err}
	}
	for name := range arguments {
		if before, ok := hold.Arguments[name]; !ok || string(store.EncodeJSON(before)) != string(store.EncodeJSON(arguments[name])) {
			hold.Corrected = append(hold.Corrected, name)
		}
	}
	for name := range hold.Arguments {
		if _, ok := arguments[name]; !ok {
			hold.Corrected = append(hold.Corrected, name)
		}
	}
	slices.Sort(hold.Corrected)
	hold.Arguments = arguments
	return nil
}

// CorrectionError is a correction, or a result that a person gives, that the call's tool
// does not take.
type CorrectionError struct {
	Call string
	Err  error
}

func (e *CorrectionError) Error() string { return "call " + e.Call + ": " + e.Err.Error() }
func (e *CorrectionError) Unwrap() error { return e.Err }

// Holds lists the calls that are held in a context and in the contexts of its
// delegates. What the delegates of another context hold, of which it is a fork,
// is none of its own.
func Holds(ctx context.Context, log store.Log, name string) ([]Record, error) {
	records, err := Records(ctx, log, name)
	if err != nil {
		return nil, err
	}
	return heldAmong(ctx, log, name, records)
}

// heldAmong is [Holds] of a context whose records are known.
func heldAmong(ctx context.Context, log store.Log, name string, records []Record) ([]Record, error) {
	var all []Record
	for _, r := range records {
		if r.Status == Held {
			all = append(all, r)
		}
		child, err := ownChild(ctx, log, name, &r)
		if err != nil {
			return nil, err
		}
		if child != "" {
			inside, err := Holds(ctx, log, child)
			if err != nil {
				return nil, err
			}
			all = append(all, inside...)
		}
	}
	return all, nil
}

// HeldCall finds the call of a number that is held in a context, or else the one that
// a delegate of it holds. What was held in the context itself and decided about stands
// in front of its delegates' too: who decides twice must not decide about another call.
// Its error is a [*NoSuchCallError] where none is held, or several delegates hold one.
func HeldCall(ctx context.Context, log store.Log, name, call string) (Record, error) {
	records, err := Records(ctx, log, name)
	if err != nil {
		return Record{}, err
	}
	var found []Record
	own := slices.IndexFunc(records, func(r Record) bool { return r.Call == call })
	switch {
	case own >= 0 && records[own].Hold != nil:
		return records[own], records[own].decidable()
	case own >= 0:
		err = records[own].decidable()
	default:
		err = &NoSuchCallError{Message: fmt.Sprintf("no call %q in context %s", call, name), Absent: true}
	}
	held, wrong := heldAmong(ctx, log, name, records)
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
	return Record{}, several(fmt.Sprintf("call %s is held by %d delegates", call, len(found)), contexts)
}

// decidable refuses a call about which there is nothing to decide.
func (r *Record) decidable() error {
	if r.Status == Held && r.Hold != nil {
		return nil
	}
	if h := r.Hold; h != nil && h.Decision != "" {
		return &NoSuchCallError{Message: fmt.Sprintf("call %s was %s by %s already: that decision counts", r.Call, h.Decision, h.Name())}
	}
	return &NoSuchCallError{Message: fmt.Sprintf("call %s is %s: only one that is held can be approved or rejected", r.Call, r.Status)}
}

// several is a decision that may be meant for one of several contexts.
func several(what string, contexts []string) error {
	return &NoSuchCallError{Message: fmt.Sprintf("%s: name its context (-c): %s", what, strings.Join(contexts, ", "))}
}

// LazyPlan is a plan that waits to be released.
type LazyPlan struct {
	Context string `json:"context"`
	Plan    string `json:"plan"`
	Tick    int    `json:"tick"`
	Since   string `json:"since"`
}

// Lazy lists the plans that wait to be released, in a context and in those of its
// delegates.
func Lazy(ctx context.Context, log store.Log, name string) ([]LazyPlan, error) {
	last, err := LastRun(ctx, log, name)
	if err != nil {
		return nil, err
	}
	if last.Held {
		return []LazyPlan{{name, last.Plan, last.Tick, store.FormatDate(last.began)}}, nil
	}
	return lazyInside(ctx, log, name)
}

// lazyInside is [Lazy] of a context's delegates.
func lazyInside(ctx context.Context, log store.Log, name string) ([]LazyPlan, error) {
	records, err := Records(ctx, log, name)
	if err != nil {
		return nil, err
	}
	var all []LazyPlan
	for _, r := range records {
		child, err := ownChild(ctx, log, name, &r)
		if err != nil {
			return nil, err
		}
		if child != "" {
			inside, err := Lazy(ctx, log, child)
			if err != nil {
				return nil, err
			}
			all = append(all, inside...)
		}
	}
	return all, nil
}

// Release lets a lazy plan run, once its context is resumed: that of a context, or, if
// its own is not lazy, the one of a delegate of it. It gives the plan's context. Its
// error is a [*NoSuchCallError] where no plan waits for that, where several do, or where
// somebody else was first.
func Release(ctx context.Context, log store.Log, name string, who Who) (string, error) {
	last, err := LastRun(ctx, log, name)
	if err != nil {
		return "", err
	}
	if last.Held {
		return name, last.release(ctx, log, name, who)
	}
	plans, err := lazyInside(ctx, log, name)
	if err != nil {
		return "", err
	}
	contexts := make([]string, len(plans))
	for i, p := range plans {
		contexts[i] = p.Context
	}
	switch {
	case len(plans) == 0:
		return "", &NoSuchCallError{Message: fmt.Sprintf("context %s has no plan that waits to be approved", name)}
	case last.plan.Mode == modeLazy: // who releases twice must not release another
		return "", several("the plan of context "+name+" was approved before, and a delegate's waits", contexts)
	case len(plans) > 1:
		return "", several(fmt.Sprintf("%d delegates have plans that wait", len(plans)), contexts)
	}
	if last, err = LastRun(ctx, log, contexts[0]); err != nil {
		return "", err
	}
	return contexts[0], last.release(ctx, log, contexts[0], who)
}

// release lets the run's newest plan, which is lazy, run.
func (r *Run) release(ctx context.Context, log store.Log, name string, who Who) error {
	appended, err := log.Append(ctx, store.Batch{
		Context: name, ExpectSeq: store.AnySeq,
		Journal: []store.Entry{{Event: eventRelease, Data: string(store.EncodeJSON(releaseEvent{r.Tick, who}))}},
	})
	if err != nil {
		return err
	}
	earlier, err := r.released(ctx, log, name, appended.N-1)
	if earlier {
		err = &NoSuchCallError{Message: fmt.Sprintf("somebody else has just approved the plan of context %s", name)}
	}
	return err
}

// releaseEvent is a release of a plan. The first logs don't say of which.
type releaseEvent struct {
	Tick int `json:"tick,omitempty"`
	Who
}

// released tells whether the run's newest plan was released, up to a position in the
// journal; 0 is all of it. A release of the plan before may come after the plan, from
// somebody who was shown that one.
func (r *Run) released(ctx context.Context, log store.Log, name string, at int64) (bool, error) {
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, Event: eventRelease, After: r.after, At: at}) {
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
