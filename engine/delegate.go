package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
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
func (c *Call) parseDelegate(registry *Registry) error {
	name, err := c.text("_delegate")
	if err != nil {
		return err
	}
	d := &Delegate{}
	if name != Anonymous {
		if d, err = registry.delegate(name); err != nil {
			return &fault{CodeUnknownTool, err}
		}
	} else {
		inner := *c
		inner.delegate = nil
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

// maxContextName is how long the name of a context may be.
const maxContextName = 64

// room is a delegate's run, as its call begins it.
type room struct {
	runner Runner
	start  Start
	origin store.Origin
	wanted bool // its output is the call's result
}

// room makes ready what a call's delegate runs in: its own messages, then what
// the call's scopes grant, then its parameters as input.
func (t *tick) room(i int, in Invocation) *room {
	call := t.plan.Calls[i]
	r := &room{
		runner: *t.runner, origin: store.Origin{Parent: t.context, Call: t.calls[i].record.Call},
		wanted: call.Output != nil && call.delegate.name != Anonymous,
	}
	r.runner.depth++
	if call.delegate.Registry != nil {
		r.runner.Registry = call.delegate.Registry
	}
	request := call.request(in)
	request.Context = slices.Concat(request.Context, scoped(call, in.Context))
	r.start = Start{Context: t.calls[i].record.Child, Request: request, Approve: t.event.Approve}
	params := map[string]any{}
	for name := range call.params {
		params[name] = in.Call[name]
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

// request is what the call's delegate runs. The result is held to the tool's
// _output, unless the delegate says itself what it gives.
func (c *Call) request(in Invocation) *Request {
	if c.delegate.name == Anonymous {
		return c.anonymous(in)
	}
	request := *c.delegate.Request
	request.Name = c.delegate.name
	if request.Schema == nil && c.tool.output != nil {
		request.Schema = c.tool.result
	}
	return &request
}

// anonymous is a request of the call alone, with what it was resolved to.
func (c *Call) anonymous(in Invocation) *Request {
	call := map[string]any{}
	for name, v := range c.Issued {
		switch {
		case name == "_delegate" || name == "_instance":
		case strings.HasPrefix(name, "_"):
			call[name] = v
		default:
			call[name] = literal(in.Call[name])
		}
	}
	request := &Request{Name: Anonymous, Tools: map[string]any{c.Tool: c.tool.plain()}, Calls: []Source{{Call: call}}}
	if c.Output == nil {
		return request
	}
	var alternatives []string
	for _, paths := range c.Output.Alternatives {
		alternatives = append(alternatives, paths[0].String())
	}
	request.Output, request.HasOutput = strings.Join(alternatives, " || "), true
	return request
}

// plain is the tool's definition without its delegate and its instance.
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
	for _, name := range []string{"_delegate", "_instance"} {
		delete(out, name)
		delete(properties, name)
	}
	return out
}

// enter runs a delegate, or goes on with it where it stands.
func (r *room) enter(ctx context.Context) result {
	if r.runner.depth > MaxDepth {
		return result{err: &fault{CodeSchema, fmt.Errorf("delegates are nested deeper than %d", MaxDepth)}}
	}
	last, err := LastRun(ctx, r.runner.Log, r.start.Context)
	if err != nil {
		return result{err: &logError{err}}
	}
	var outcome *Outcome
	if last.Tick > 0 {
		outcome, err = r.runner.Resume(ctx, Resume{Context: r.start.Context, Request: r.start.Request})
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
		return r.bring(outcome)
	case errors.As(err, &busy): // somebody resumed it on its own
		return result{waits: []string{}}
	case errors.As(err, &plan), errors.As(err, &message):
		return result{err: &fault{CodeSchema, fmt.Errorf("its delegate %s can't run: %w", r.start.Request.Name, err)}}
	}
	return result{err: &logError{err}}
}

// bring makes the call's result of how its delegate ended.
func (r *room) bring(outcome *Outcome) result {
	name := r.start.Request.Name
	fail := func(format string, args ...any) result {
		return result{err: &Failure{map[string]any{
			"message": fmt.Sprintf("delegate %s (context %s) ", name, outcome.Context) + fmt.Sprintf(format, args...),
			"code":    "delegate", "context": outcome.Context,
		}}}
	}
	switch outcome.Status {
	case RunWaiting:
		return result{waits: waitsFor(outcome)}
	case RunFailed:
		return fail("failed: %s", why(outcome))
	}
	if outcome.Output == nil && r.wanted {
		return fail("ended without output")
	}
	return result{value: Result{Value: outcome.Output}, where: wroteWhere(name, outcome)}
}

// wroteWhere is the alternative that an anonymous delegate took, which is its
// call's own.
func wroteWhere(name string, outcome *Outcome) string {
	if name == Anonymous && len(outcome.Calls) == 1 && len(outcome.Calls[0].Writes) > 0 {
		return outcome.Calls[0].Writes[0]
	}
	return ""
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

// why says what a run failed of.
func why(outcome *Outcome) string {
	for _, r := range outcome.Calls {
		if message, ok := r.Error["message"].(string); ok && r.Status == Failed && !r.Unstored {
			return fmt.Sprintf("call %s (%s): %s", r.Call, r.Tool, message)
		}
	}
	return outcome.Error
}
