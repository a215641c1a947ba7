package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"obelus/store"
)

// Delegate is what a call can be handed to (protocol §8): a request of its own,
// which runs in a child context.
type Delegate struct {
	Request *Request

	// Registry is what its calls may name; nil for the registry of whoever
	// calls it.
	Registry *Registry
}

// Anonymous as a call's _delegate runs the call itself in an empty room.
const Anonymous = "anonymous"

// MaxDepth bounds how deep delegates call delegates.
const MaxDepth = 16

// delegate finds a delegate by what a call names.
func (r *Registry) delegate(name string) (*Delegate, error) {
	if d, ok := r.Delegates[name]; ok {
		return d, nil
	}
	if ext := path.Ext(name); ext == ".lua" || ext == ".json" {
		if r.File == nil {
			return nil, fmt.Errorf("_delegate: %s: there are no files here", name)
		}
		d, err := r.File(name)
		if err != nil {
			return nil, fmt.Errorf("_delegate: %w", err)
		}
		return d, nil
	}
	return nil, fmt.Errorf("_delegate: %q is neither a registered delegate nor a .lua or .json file%s", name, didYouMean(name, sortedKeys(r.Delegates)))
}

// namesDelegate tells whether a call says itself who is to do it: then it needs
// no tool.
func namesDelegate(call map[string]any) bool {
	name, ok := call["_delegate"].(string)
	return ok && name != Anonymous
}

// delegated is a call's delegate, found.
type delegated struct {
	*Delegate
	name string
}

// parseDelegate finds the call's delegate. The work is done by the child's own
// calls, so that no time limit or retry applies to it as a whole.
func (c *Call) parseDelegate(registry *Registry, known bool) error {
	name, err := c.text("_delegate")
	if err != nil {
		return err
	}
	d := &Delegate{}
	if name != Anonymous {
		if d, err = registry.delegate(name); err != nil {
			return &fault{CodeUnknownTool, err}
		}
	} else if known {
		inner := *c
		if err := inner.parseActivity(registry); err != nil {
			return err
		}
	}
	c.delegate = &delegated{d, name}
	c.activity = &Registered{Name: "delegate " + name}
	return nil
}

// childOf names the context of a delegate.
func childOf(context, call string, attempt int) string {
	name := context + "." + call
	if attempt > 1 {
		name += fmt.Sprintf("-%d", attempt)
	}
	if len(name) > maxContextName {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:16]) + "." + call
	}
	return name
}

// newChild names the context of a call's delegate: one that is not there yet.
func (t *tick) newChild(ctx context.Context, r *Record) (string, error) {
	for attempt := r.Attempts; ; attempt++ {
		name := childOf(t.context, r.Call, attempt)
		switch _, err := t.runner.Log.Head(ctx, name); {
		case errors.Is(err, store.ErrNoContext):
			return name, nil
		case err != nil:
			return "", err
		}
	}
}

// maxContextName is how long the name of a context may be.
const maxContextName = 64

// room is a delegate's run, as its call begins it.
type room struct {
	runner Runner
	start  Start
	origin store.Origin
	wanted bool // its output is the call's result
	retry  bool // what failed in it is to run again
}

// room makes ready what a call's delegate runs in: its own messages, then what
// the call's scopes grant, then its parameters as input.
func (t *tick) room(i int, in Invocation) *room {
	call := t.plan.Calls[i]
	r := &room{
		runner: *t.runner, origin: store.Origin{Parent: t.context, Call: t.calls[i].record.Call},
		wanted: call.Output != nil, retry: t.calls[i].record.Retry,
	}
	r.runner.depth++
	if call.delegate.Registry != nil {
		r.runner.Registry = call.delegate.Registry
	}
	request := call.request(in)
	request.Context = slices.Concat(request.Context, scoped(call, in.Context))
	r.start = Start{Context: t.calls[i].record.Child, Request: request}
	if call.delegate.name != Anonymous { // else its call has been held as it is
		r.start.Approve = t.event.Approve
	}
	params := map[string]any{}
	for name, v := range in.Call {
		if !strings.HasPrefix(name, "_") {
			params[name] = v
		}
	}
	if len(params) > 0 {
		r.start.Input, r.start.HasInput = params, true
	}
	return r
}

// scoped makes the messages of what a call's scopes grant, in their order.
func scoped(call *Call, granted map[string]any) []store.Message {
	var messages []store.Message
	var seen []string
	for _, scope := range call.scopes {
		kind := scope.Kind()
		v, ok := granted[kind]
		if !ok || slices.Contains(seen, kind) {
			continue
		}
		seen = append(seen, kind)
		messages = append(messages, store.Message{Type: store.TypeData, Kind: kind, Data: v, HasData: true})
	}
	return messages
}

// request is what the call's delegate runs. A planner is held to the tool's
// _output, so that it is asked again.
func (c *Call) request(in Invocation) *Request {
	if c.delegate.name == Anonymous {
		return c.anonymous(in)
	}
	request := *c.delegate.Request
	request.Name = c.delegate.name
	if request.Schema == nil && request.Planner != nil {
		request.Schema = c.tool.result
	}
	return &request
}

// outerMeta are the meta-properties that are for the parent's call alone.
var outerMeta = []string{"_delegate", "_instance"}

// anonymous is a request of the call alone, with what it was resolved to. It
// writes in its room as it would outside; what its activity gave back goes to
// the parent's call by its record, see [capture].
func (c *Call) anonymous(in Invocation) *Request {
	call := map[string]any{}
	for name, v := range in.Call {
		switch {
		case slices.Contains(outerMeta, name):
		case strings.HasPrefix(name, "_"):
			call[name] = v
		default:
			call[name] = literal(v)
		}
	}
	return &Request{Name: Anonymous, Tools: map[string]any{c.Tool: c.tool.plain()}, Calls: []Source{{Call: call}}}
}

// plain is the tool's definition without what is for the parent's call alone.
func (t *Tool) plain() any {
	object, ok := t.Schema.(map[string]any)
	if !ok {
		return t.Schema
	}
	out := maps.Clone(object)
	properties, _ := object["properties"].(map[string]any)
	if properties = maps.Clone(properties); properties != nil {
		out["properties"] = properties
	}
	for _, name := range outerMeta {
		delete(out, name)
		delete(properties, name)
	}
	if required, ok := requiredOf(object); ok {
		kept := []any{}
		for _, name := range required {
			if !slices.Contains(outerMeta, name) {
				kept = append(kept, name)
			}
		}
		out["required"] = kept
	}
	return out
}

// capture is what an activity gave back, as the record of an anonymous
// delegate's call keeps it; nil where the activity broke down.
func capture(res result) Values {
	var failure *Failure
	switch {
	case errors.As(res.err, &failure):
		return Values{"failure": failure.Fields}
	case res.err != nil:
		return nil
	case res.value.Message != nil:
		return Values{"message": res.value.Message}
	case res.value.To != "":
		return Values{"to": res.value.To, "value": res.value.Value}
	}
	return Values{"value": res.value.Value}
}

// uncapture is the way back from [capture].
func uncapture(object Values) result {
	if fields, ok := object["failure"].(map[string]any); ok {
		return result{err: &Failure{fields}}
	}
	var value Result
	value.Value = object["value"]
	value.To, _ = object["to"].(string)
	value.Message, _ = object["message"].(map[string]any)
	return result{value: value}
}

// insideError is an anonymous delegate that failed though its call has
// alternatives: a fault, not an outcome.
type insideError struct{ fields map[string]any }

func (e *insideError) Error() string { return (&Failure{e.fields}).Error() }

// enter runs a delegate, or goes on with it where it stands.
func (r *room) enter(ctx context.Context) result {
	if r.runner.depth > MaxDepth {
		return result{err: &fault{CodeSchema, fmt.Errorf("delegates are nested deeper than %d", MaxDepth)}}
	}
	last, err := LastRun(ctx, r.runner.Log, r.start.Context)
	if err != nil {
		return result{err: &logError{err}}
	}
	if taken, err := r.taken(ctx); taken || err != nil {
		return result{err: cmp.Or[error](wrapLog(err), fmt.Errorf("the context %s of its delegate belongs to something else", r.start.Context))}
	}
	var outcome *Outcome
	if last.Tick > 0 {
		outcome, err = r.resume(ctx, last)
	} else {
		outcome, err = r.runner.run(ctx, r.start, r.origin)
	}
	if ctx.Err() != nil && (err != nil || outcome.Status == RunCancelled) {
		return result{err: context.Canceled}
	}
	var busy *BusyError
	var plan *PlanError
	var message *MessageError
	switch {
	case err == nil:
		return r.bring(ctx, outcome)
	case errors.As(err, &busy): // somebody resumed it on its own
		return r.wait(ctx, []string{})
	case errors.As(err, &plan), errors.As(err, &message):
		return result{err: &fault{CodeSchema, fmt.Errorf("its delegate %s can't run: %w", r.start.Request.Name, err)}}
	}
	return result{err: &logError{err}}
}

// resume goes on with the delegate. If it is to be retried, so are the calls
// that failed in it.
func (r *room) resume(ctx context.Context, last Run) (*Outcome, error) {
	again := Resume{Context: r.start.Context, Request: r.start.Request}
	if r.retry && last.Status == RunFailed {
		records, err := Records(ctx, r.runner.Log, r.start.Context)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			if record.Tick == last.Tick && record.Status == Failed && !record.Unstored {
				again.Retry = append(again.Retry, record.Call)
			}
		}
	}
	return r.runner.Resume(ctx, again)
}

// wait is the result of a delegate that waits.
func (r *room) wait(ctx context.Context, waits []string) result {
	entry, _, err := newest(ctx, r.runner.Log, store.JournalFilter{})
	if err != nil {
		return result{err: &logError{err}}
	}
	return result{waits: waits, seen: entry.N}
}

// wakeInside looks at delegates again that wait, once something has happened in
// their contexts, or in those of their own delegates.
func (t *tick) wakeInside(ctx context.Context) error {
	if len(t.inside) == 0 {
		return nil
	}
	after := int64(math.MaxInt64)
	for _, i := range t.inside {
		after = min(after, t.calls[i].seen)
	}
	for entry, err := range t.runner.Log.Journal(ctx, store.JournalFilter{After: after}) {
		if err != nil {
			return err
		}
		for child, i := range t.inside {
			if entry.N <= t.calls[i].seen {
				continue
			}
			t.calls[i].seen = entry.N
			if entry.Context == child || strings.HasPrefix(entry.Context, child+".") {
				delete(t.inside, child)
				t.calls[i].record.Status = Blocked
				t.queue(i)
			}
		}
	}
	return nil
}

// taken tells whether the delegate's context was made by something else.
func (r *room) taken(ctx context.Context) (bool, error) {
	origin, ok, err := originOf(ctx, r.runner.Log, r.start.Context)
	return ok && origin != r.origin, err
}

func originOf(ctx context.Context, log store.Log, name string) (origin store.Origin, ok bool, err error) {
	for info, err := range log.Contexts(ctx, name) {
		if err != nil || info.Context == name {
			return info.Origin, err == nil, err
		}
	}
	return store.Origin{}, false, nil
}

// bring makes the call's result of how its delegate ended.
func (r *room) bring(ctx context.Context, outcome *Outcome) result {
	name := r.start.Request.Name
	fail := func(what string) map[string]any {
		return map[string]any{
			"message": fmt.Sprintf("delegate %s (context %s) %s", name, outcome.Context, what),
			"code":    "delegate", "context": outcome.Context,
		}
	}
	switch {
	case outcome.Status == RunWaiting:
		return r.wait(ctx, waitsFor(outcome))
	case outcome.Status == RunFailed && name == Anonymous:
		return result{err: &insideError{fail("failed: " + r.why(ctx, outcome.Calls, outcome.Error))}}
	case outcome.Status == RunFailed:
		return result{err: &Failure{fail("failed: " + r.why(ctx, outcome.Calls, outcome.Error))}}
	case name == Anonymous && len(outcome.Calls) == 1:
		return uncapture(outcome.Calls[0].Given)
	case outcome.Output == nil && r.wanted:
		return result{err: &Failure{fail("ended without output")}}
	}
	return result{value: Result{Value: outcome.Output}}
}

// waitsFor lists what a run waits for: references, held calls, its plan.
func waitsFor(outcome *Outcome) []string {
	waits := []string{}
	for _, r := range outcome.Calls {
		for _, path := range r.WaitingOn {
			if !slices.Contains(waits, path) {
				waits = append(waits, path)
			}
		}
	}
	return waits
}

// why says what a run failed of. A failure of a delegate is told where it began,
// however deep that is.
func (r *room) why(ctx context.Context, calls []Record, otherwise string) string {
	where := ""
	for {
		i := slices.IndexFunc(calls, func(r Record) bool { return r.Status == Failed && !r.Unstored })
		if i < 0 {
			return otherwise
		}
		c := calls[i]
		message, _ := c.Error["message"].(string)
		otherwise = fmt.Sprintf("call %s (%s)%s: %s", c.Call, c.Tool, where, message)
		if c.Child == "" || c.Error["code"] != "delegate" {
			return otherwise
		}
		var err error
		if calls, err = Records(ctx, r.runner.Log, c.Child); err != nil {
			return otherwise
		}
		where = " in context " + c.Child
	}
}
