package plan

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/spell"
	"obelus/store"
)

// Delegate is a request that a call can be handed to (protocol §8); it runs in a child context.
type Delegate struct {
	Request *Request

	// Registry holds the tools and activities for its calls; nil for the registry of its caller,
	// whose model answers its latent calls too if it has none.
	Registry *Registry

	making sync.Mutex
	made   *Request // nil until it has been received
}

// Isolated returns the delegate's request as it runs in a context of its own: a model that plans it
// is offered the tools that the request brings or lists, and no others (protocol §8). It is nil for
// a delegate without a request.
func (d *Delegate) Isolated() *Request {
	if d.Request == nil || !d.Request.IsModelPlanned() {
		return d.Request
	}
	request, planning := *d.Request, *d.Request.Planner.(*Planning)
	planning.Delegated = true
	request.Planner = &planning
	return &request
}

// normalize is the delegate's request as it is run. It is made once, though plans that name the
// delegate are compiled again and again.
func (d *Delegate) normalize() (_ *Request, err error) {
	d.making.Lock()
	defer d.making.Unlock()
	if d.made == nil {
		d.made, err = d.Isolated().Normalize()
	}
	return d.made, err
}

// RegistryFor returns the registry for the delegate's calls, given that of the caller, whose model
// answers latent calls if the delegate has none.
func (d *Delegate) RegistryFor(caller *Registry) *Registry {
	own := cmp.Or(d.Registry, caller.base, caller)
	if own.Model != nil || caller.Model == nil {
		return own
	}
	with := *own
	with.Model = caller.Model
	if with.Models == nil {
		with.Models = caller.Models
	}
	return &with
}

// toolsFor are the names of those that the delegate's calls may name, called by one whose
// registry is given, and of its own delegates'.
func (d *Delegate) toolsFor(caller *Registry, seen map[*Delegate]bool) []string {
	if seen[d] || d.Request == nil {
		return nil
	}
	seen[d] = true
	request, err := d.normalize()
	if err != nil {
		return nil // its call reports it
	}
	own := (&planCompiler{}).tools(request, d.RegistryFor(caller))
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
			if inner, err := own.Delegate(name); err == nil {
				names = append(names, inner.toolsFor(own, seen)...)
			}
		}
	}
	return names
}

// Anonymous as a call's _delegate runs the call itself in an empty room.
const Anonymous = "anonymous"

// MaxDepth bounds how deep delegates call delegates.
const MaxDepth = 16

// Delegate finds a delegate by the name in a call.
func (r *Registry) Delegate(name string) (*Delegate, error) {
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
	return nil, fmt.Errorf("_delegate: %q is neither a registered delegate nor a .lua or .json file%s", name, spell.DidYouMean(name, jsonvalue.SortedKeys(r.Delegates)))
}

func (d *Delegate) check(name string) error {
	if d == nil || d.Request == nil {
		return fmt.Errorf("_delegate: %q has nothing to run: give it a request", name)
	}
	return nil
}

// NamesDelegate reports whether a call names its own delegate: then it needs no tool.
func NamesDelegate(call map[string]any) bool {
	name, ok := call["_delegate"].(string)
	return ok && name != Anonymous
}

// stoodIn reports whether an activity stands in for the call's delegate.
func (c *Call) stoodIn(registry *Registry) bool {
	return registry.standIn(c.Tool) != nil && NamesDelegate(c.Issued)
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
	Name string
}

// parseDelegate finds the call's delegate. The work is done by the child's own
// calls, so that no time limit or retry applies to it as a whole.
func (c *Call) parseDelegate(registry *Registry, known bool) error {
	name, err := c.text("_delegate")
	if err != nil {
		return err
	}
	for _, property := range []string{"_timeout", "_retries"} {
		if _, given := c.Issued[property]; given {
			return Faultf(CodeSchema, "%s: a call with _delegate has none: give it to the calls of the delegate, which do the work", property)
		}
	}
	d := &Delegate{}
	if name != Anonymous {
		if d, err = registry.Delegate(name); err != nil {
			return &Fault{CodeUnknownTool, err}
		}
	} else if known {
		inner := *c
		if err := inner.parseActivity(registry); err != nil {
			return err
		}
	}
	c.Delegate = &delegated{d, name}
	c.Activity = &Registered{Name: "delegate " + name}
	return nil
}

// Request is the request that the call's delegate runs. Its output must fit the tool's _output, so
// that a planner whose output does not is asked again.
func (c *Call) Request(in Invocation) *Request {
	if c.Delegate.Name == Anonymous {
		return c.anonymous(in)
	}
	request := *c.Delegate.Isolated()
	request.Name = c.Delegate.Name
	if request.Schema == nil && request.Planner != nil {
		request.Schema = c.Definition.Result
	}
	request.Outcomes = c.Alternatives()
	return &request
}

// Opening returns the messages with which the context of the call's delegate begins, behind those
// of the delegate itself: the values that the call's scopes grant, in the order of the scopes, and
// as input its parameters, which is not set where there are none.
func (c *Call) Opening(in Invocation) (granted []store.Message, input store.Optional) {
	var seen []string
	for _, scope := range c.ScopePaths {
		kind := scope.Kind()
		v, ok := in.Context[kind]
		if !ok || slices.Contains(seen, kind) {
			continue
		}
		seen = append(seen, kind)
		granted = append(granted, store.Message{Type: store.TypeData, Kind: kind, Data: store.Some(v)})
	}
	params := map[string]any{}
	for name, v := range in.Call {
		if !strings.HasPrefix(name, "_") {
			params[name] = v
		}
	}
	if len(params) > 0 {
		input = store.Some(params)
	}
	return granted, input
}

// outerMeta are the meta-properties that are for the parent's call alone.
var outerMeta = []string{"_after", "_at", "_delegate", focusProperty, "_if", "_in", "_instance"}

// anonymous returns a request of the call alone, with its resolved parameters. It writes in its own
// context as it would outside; the parent's call gets the result of its activity from the record,
// see engine.capture.
func (c *Call) anonymous(in Invocation) *Request {
	call := map[string]any{}
	for name, v := range in.Call {
		switch {
		case slices.Contains(outerMeta, name) || name == allowProperty: // its tool has that
		case name == "_output" && c.byModel != nil: // the model that planned does not see that room
		case strings.HasPrefix(name, "_"):
			call[name] = v
		default:
			call[name] = Literal(v)
		}
	}
	return &Request{Name: Anonymous, Tools: map[string]any{c.Tool: c.Definition.plain()}, Calls: []Source{{Call: call, Accepted: true}}}
}

// plain returns the tool's definition without the meta-properties of the parent's call.
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
