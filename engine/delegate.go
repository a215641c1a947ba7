package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"obelus/store"
)

// Delegate is what a call can be handed to (protocol §8): a request of its own,
// which runs in a child context.
type Delegate struct {
	Request *Request

	// Registry is what its calls may name; nil for the registry of whoever
	// calls it, whose model answers its latent calls too if it has none.
	Registry *Registry

	making sync.Mutex
	made   *Request // nil until it has been received
}

// received is the delegate's request as it is run. Plans that name the delegate
// are compiled again and again, and it stays what it is.
func (d *Delegate) received() (_ *Request, err error) {
	d.making.Lock()
	defer d.making.Unlock()
	if d.made == nil {
		d.made, err = d.Request.received()
	}
	return d.made, err
}

// registry is what the delegate's calls may name, called by one whose registry is
// given. Who answers latent calls there does so here, if nobody else does.
func (d *Delegate) registry(caller *Registry) *Registry {
	own := cmp.Or(d.Registry, caller.base, caller)
	if own.Model != nil || caller.Model == nil {
		return own
	}
	with := *own
	with.Model = caller.Model
	return &with
}

// tools are the names of those that the delegate's calls may name, called by one whose
// registry is given, and of its own delegates'.
func (d *Delegate) tools(caller *Registry, seen map[*Delegate]bool) []string {
	if seen[d] || d.Request == nil {
		return nil
	}
	seen[d] = true
	request, err := d.received()
	if err != nil {
		return nil // as its call will tell
	}
	own := (&planCompiler{}).tools(request, d.registry(caller))
	names := own.Names()
	for _, source := range request.Calls {
		call, _ := source.Call.(map[string]any)
		tool, _ := call["_tool"].(string)
		by := []any{call["_delegate"]}
		if known, ok := own.Tool(tool); ok {
			by = append(by, known.consts["_delegate"])
		}
		for _, v := range by {
			name, _ := v.(string)
			if inner, err := own.delegate(name); err == nil {
				names = append(names, inner.tools(own, seen)...)
			}
		}
	}
	return names
}

// Anonymous as a call's _delegate runs the call itself in an empty room.
const Anonymous = "anonymous"

// MaxDepth bounds how deep delegates call delegates.
const MaxDepth = 16

// delegate finds a delegate by what a call names.
func (r *Registry) delegate(name string) (*Delegate, error) {
	if d, ok := r.Delegates[name]; ok {
		return d, d.check(name)
	}
	if ext := path.Ext(name); ext == ".lua" || ext == ".json" {
		if r.File == nil {
			return nil, fmt.Errorf("_delegate: %s: there are no files here", name)
		}
		d, err := r.File(name)
		if err != nil {
			return nil, fmt.Errorf("_delegate: %w", err)
		}
		return d, d.check(name)
	}
	return nil, fmt.Errorf("_delegate: %q is neither a registered delegate nor a .lua or .json file%s", name, didYouMean(name, sortedKeys(r.Delegates)))
}

func (d *Delegate) check(name string) error {
	if d == nil || d.Request == nil {
		return fmt.Errorf("_delegate: %q has nothing to run: give it a request", name)
	}
	return nil
}

// namesDelegate tells whether a call says itself who is to do it: then it needs
// no tool.
func namesDelegate(call map[string]any) bool {
	name, ok := call["_delegate"].(string)
	return ok && name != Anonymous
}

// stoodIn tells whether an activity stands in for the call's delegate.
func (c *Call) stoodIn(registry *Registry) bool {
	return registry.standIn(c.Tool) != nil && namesDelegate(c.Issued)
}

// standIn is the activity that stands in for whatever runs a tool's calls; nil for none.
func (r *Registry) standIn(tool string) *Registered {
	if a := r.Activities[tool]; a != nil && a.StandIn {
		return a
	}
	return nil
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

// cutSum is how many bytes of a sum stand for a name that would be too long.
const cutSum = 16

// childOf names the context of a delegate.
func childOf(context, call string, attempt int) string {
	name := context + "." + call
	if attempt > 1 {
		name += fmt.Sprintf("-%d", attempt)
	}
	if len(name) > maxContextName {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:cutSum]) + "." + call
	}
	return name
}

// isCut tells whether a name may be that of a delegate's context whose parents' names
// were too long to be in it.
func isCut(name string) bool {
	sum, _, _ := strings.Cut(name, ".")
	_, err := hex.DecodeString(sum)
	return err == nil && hex.DecodedLen(len(sum)) == cutSum
}

// expected is the origin of a context that is not there yet: that of a delegate, where a
// call has said that its delegate will run there. A name that had to be cut tells nothing
// of that.
func expected(ctx context.Context, log store.Log, name string) (store.Origin, error) {
	parts := strings.Split(name, ".")
	if len(parts) < 3 {
		return store.Origin{}, nil
	}
	parent := strings.Join(parts[:len(parts)-2], ".")
	if store.CheckStoredContext(parent) != nil {
		return store.Origin{}, nil
	}
	records, err := Records(ctx, log, parent)
	if errors.Is(err, store.ErrNoContext) {
		err = nil
	}
	for _, r := range records {
		if r.Child == name && !r.Status.Settled() {
			return store.Origin{Parent: parent, Call: r.Call}, nil
		}
	}
	return store.Origin{}, err
}

// newChild names the context of a call's delegate: one that is not there yet, or
// the recorded one of a call that is replayed.
func (t *tick) newChild(ctx context.Context, r *Record) (string, error) {
	if p := t.runner.replay; p != nil {
		if child, err := p.child(ctx, t.context, r.Call); child != "" || err != nil {
			return child, err
		}
	}
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
	r.runner.Approve = Policy{} // the run's own counts
	r.runner.Registry = call.delegate.registry(t.runner.Registry)
	request := call.request(in)
	request.Context = slices.Concat(request.Context, scoped(call, in.Context))
	request = t.runner.replay.delegate(t.calls[i].record.Child, request)
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
