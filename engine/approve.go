package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/store"
)

// Policy says which calls are held for a person before they run. The zero
// Policy holds none.
type Policy struct {
	Always bool     // every call
	Scopes bool     // those that request scopes, beside what their tool prescribes
	Tools  []string // those of these tools
}

// ParsePolicy reads "never", "always", "scopes", or names of tools with commas
// between them.
func ParsePolicy(text string) (Policy, error) {
	var p Policy
	for _, word := range strings.Split(text, ",") {
		switch word = strings.TrimSpace(word); word {
		case "":
			return p, errors.New(`expected never, always, scopes or names of tools`)
		case "never":
		case "always":
			p.Always = true
		case "scopes":
			p.Scopes = true
		default:
			p.Tools = append(p.Tools, word)
		}
	}
	return p, nil
}

// String is the policy as [ParsePolicy] reads it.
func (p Policy) String() string {
	words := slices.Clone(p.Tools)
	if p.Scopes {
		words = append(words, "scopes")
	}
	if p.Always {
		words = append(words, "always")
	}
	if len(words) == 0 {
		return "never"
	}
	return strings.Join(words, ",")
}

// MarshalText is [Policy.String].
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is [ParsePolicy].
func (p *Policy) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePolicy(string(text))
	return err
}

// PolicyError is a policy that names a tool which nobody knows: it would hold
// nothing, though a person counts on it.
type PolicyError struct{ Message string }

func (e *PolicyError) Error() string { return e.Message }

// check refuses a policy that names tools which are not known. What a delegate
// inherits may name tools of others.
func (p Policy) check(request *Request, r *Runner) error {
	if r.depth > 0 || len(p.Tools) == 0 {
		return nil
	}
	names := (&planCompiler{}).tools(request, r.Registry).Names()
	for _, tool := range p.Tools {
		if !slices.Contains(names, tool) {
			return &PolicyError{fmt.Sprintf("the approval policy names the tool %q, which is not registered%s", tool,
				didYouMean(tool, append(names, "never", "always", "scopes")))}
		}
	}
	return nil
}

// holds tells whether a call is held under the policy. A thought does nothing
// that could be approved.
func (p Policy) holds(c *Call) bool {
	_, provisioned := c.tool.consts["_scopes"]
	return (c.activity != nil || c.Output != nil) &&
		(p.Always || p.Scopes && len(c.scopes) > 0 && !provisioned || slices.Contains(p.Tools, c.Tool))
}

// Decisions about a held call.
const (
	Approved = "approved"
	Rejected = "rejected"
)

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
}

// hold records that a call waits for a person.
func (t *tick) hold(i int, resolved, granted map[string]any, reads map[string]int64) {
	c, call := t.change(i), t.plan.Calls[i]
	h := &Hold{Since: date(t.runner.now()), Arguments: Values{}, Granted: granted}
	for name := range call.params {
		h.Arguments[name] = resolved[name]
	}
	for _, scope := range call.scopes {
		h.Scopes = append(h.Scopes, strings.TrimPrefix(scope.String(), store.Dagger))
	}
	c.record.Status, c.record.Hold, c.record.WaitingOn, c.record.At = Held, h, nil, t.view.Seq()
	if len(reads) > 0 {
		c.record.Reads = reads
	}
	t.holding[i] = true
	t.note(i)
}

// decided goes on with a call as a person decided.
func (t *tick) decided(ctx context.Context, i int, h *Hold) error {
	if h.Decision == Rejected {
		failure := &Failure{map[string]any{"message": h.Reason, "code": Rejected}}
		t.change(i).began = t.runner.now()
		return t.settle(ctx, result{index: i, err: failure})
	}
	call := t.plan.Calls[i]
	resolved := make(map[string]any, len(call.Issued))
	for name, v := range call.Issued {
		if strings.HasPrefix(name, "_") {
			resolved[name] = v
		}
	}
	for name, v := range h.Arguments {
		resolved[name] = v
	}
	granted := map[string]any(h.Granted)
	if granted == nil {
		granted = map[string]any{}
	}
	return t.start(ctx, i, Invocation{Call: resolved, Context: granted, Tool: call.tool.Schema}, t.calls[i].record.Reads)
}

// issued is call i as issued, with the corrections that a person made.
func (t *tick) issued(i int) map[string]any {
	call, h := t.plan.Calls[i], t.calls[i].record.Hold
	if h == nil || len(h.Corrected) == 0 {
		return call.Issued
	}
	corrected := make(map[string]any, len(call.Issued))
	for name, v := range call.Issued {
		corrected[name] = v
	}
	for _, name := range h.Corrected {
		delete(corrected, name)
		if v, ok := h.Arguments[name]; ok {
			corrected[name] = literal(v)
		}
	}
	return corrected
}

// literal writes a value so that none of its strings is read as an expression.
func literal(v any) any {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, store.Dagger) {
			return store.Dagger + v
		}
	case []any:
		all := make([]any, len(v))
		for i, e := range v {
			all[i] = literal(e)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, e := range v {
			all[key] = literal(e)
		}
		return all
	}
	return v
}

// takeDecisions finds what people have decided about held calls while the tick
// runs.
func (t *tick) takeDecisions(ctx context.Context) error {
	if len(t.holding) == 0 {
		return nil
	}
	for entry, err := range t.runner.Log.Journal(ctx, store.JournalFilter{Context: t.context, After: t.journalled}) {
		if err != nil {
			return err
		}
		t.journalled = entry.N
		if entry.Event != string(Ready) {
			continue
		}
		r, err := readRecord(entry)
		if err != nil {
			return err
		}
		if i := r.Position - 1; r.Tick == t.event.Tick && t.holding[i] {
			delete(t.holding, i)
			t.calls[i].record.Status, t.calls[i].record.Hold = Ready, r.Hold
			t.queue(i)
		}
	}
	return nil
}

// attended tells whether a held call may be decided about while the run waits.
func (t *tick) attended() bool {
	if t.runner.Attend == nil {
		return false
	}
	for i := range t.holding {
		r := t.calls[i].record
		r.Context = t.context
		if t.runner.Attend(r) {
			return true
		}
	}
	return false
}

// Decision is what a person decides about a held call.
type Decision struct {
	Context   string
	Call      string         // "1.2"
	Reject    bool           // it is not to run
	Reason    string         // of a rejection
	Arguments map[string]any // of an approval: all of them, as corrected; nil as they were shown
}

// Decide records a decision about a call that is held. Corrected arguments must
// fit the call's tool. Whoever runs the context, or resumes it, goes on from
// there. Its error is a [*NoSuchCallError] where the call is not held.
func (r *Runner) Decide(ctx context.Context, d Decision) error {
	records, err := Records(ctx, r.Log, d.Context)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(records, func(r Record) bool { return r.Call == d.Call })
	if i < 0 {
		return &NoSuchCallError{fmt.Sprintf("no call %q in context %s", d.Call, d.Context)}
	}
	record := records[i]
	if record.Status != Held || record.Hold == nil {
		return &NoSuchCallError{fmt.Sprintf("call %s is %s: only one that is held can be approved or rejected", d.Call, record.Status)}
	}
	hold := *record.Hold
	hold.Decision = Approved
	if d.Reject {
		hold.Decision, hold.Reason = Rejected, cmp.Or(strings.TrimSpace(d.Reason), "rejected by a person")
	} else if d.Arguments != nil {
		if err := r.correct(ctx, record, &hold, d.Arguments); err != nil {
			return err
		}
	}
	record.Context, record.Status, record.Hold = "", Ready, &hold
	appended, err := r.Log.Append(ctx, store.Batch{
		Context: d.Context, ExpectSeq: store.AnySeq,
		Journal: []store.Entry{{Call: d.Call, Event: string(Ready), Data: encode(record)}},
	})
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
		return &NoSuchCallError{fmt.Sprintf("somebody else has just decided about call %s: that decision counts", d.Call)}
	}
	return nil
}

// correct puts a person's arguments in place of those that were shown.
func (r *Runner) correct(ctx context.Context, record Record, hold *Hold, arguments map[string]any) error {
	last, err := LastRun(ctx, r.Log, record.Context)
	if err != nil {
		return err
	}
	registry, err := contextTools(ctx, r.Log, record.Context, r.Registry)
	if err != nil {
		return err
	}
	brought, err := last.plan.tools()
	if err != nil {
		return err
	}
	tool, ok := (&planCompiler{}).tools(&Request{Tools: brought}, registry).Tool(record.Tool)
	if !ok {
		return fmt.Errorf("call %s: its tool %q is not registered, so that its arguments can't be checked", record.Call, record.Tool)
	}
	for _, name := range sortedKeys(arguments) {
		if strings.HasPrefix(name, "_") {
			return &CorrectionError{record.Call, fmt.Errorf("%s can't be corrected: only parameters can", name)}
		}
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
	if tool.params != nil {
		if err := tool.params.Validate(arguments, ""); err != nil {
			return &CorrectionError{record.Call, err}
		}
	}
	hold.Arguments = arguments
	return nil
}

// CorrectionError is a correction that the call's tool does not take.
type CorrectionError struct {
	Call string
	Err  error
}

func (e *CorrectionError) Error() string { return "call " + e.Call + ": " + e.Err.Error() }
func (e *CorrectionError) Unwrap() error { return e.Err }

// Holds lists the calls that are held in a context and in the contexts of its
// delegates.
func Holds(ctx context.Context, log store.Log, name string) ([]Record, error) {
	records, err := Records(ctx, log, name)
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, r := range records {
		if r.Status == Held {
			all = append(all, r)
		}
		if r.Child != "" && !r.Status.Settled() {
			inside, err := Holds(ctx, log, r.Child)
			if err != nil {
				return nil, err
			}
			all = append(all, inside...)
		}
	}
	return all, nil
}

// Release lets a lazy plan run, once its context is resumed.
func Release(ctx context.Context, log store.Log, name string) error {
	last, err := LastRun(ctx, log, name)
	if err != nil {
		return err
	}
	if !last.Held {
		return &NoSuchCallError{fmt.Sprintf("context %s has no plan that waits to be approved", name)}
	}
	_, err = log.Append(ctx, store.Batch{Context: name, ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: eventRelease}}})
	return err
}
