package plan

import (
	"sync/atomic"

	"obelus/engine/schema"
	"obelus/store"
)

// Message returns the plan message of a request, as it is stored before the first call starts.
func Message(request *Request) store.Message {
	calls := make([]any, len(request.Calls))
	for i, src := range request.Calls {
		calls[i] = src.Call
	}
	return store.Message{Type: store.TypePlan, Data: store.Some(calls), Mode: request.Mode}
}

// Request is the content of a plan file: calls, or a planner that gives them, and their
// surroundings. Its values may be anything that [store.FromGo] takes.
type Request struct {
	Name    string          // the plan file as the user knows it, "plans/refund.lua"
	Context []store.Message // appended before the plan
	Calls   []Source        // in the order of the plan
	Mode    string          // "eager", "lazy", or empty for eager; anything else is refused

	// Released reports that Mode is eager by the choice of who starts the run, and that the plan
	// itself is lazy: it counts as released, in the run's own context alone.
	Released bool

	// Output is the final output, in which references are resolved when all calls have settled. As
	// for a call, an earlier value does not count where a call of the plan may write and has not. A
	// value that is not set is refused.
	Output     store.Optional
	OutputLine int // its line in the file, 0 if not known

	// Outcomes are the alternatives of the call that the request answers, as [Call.Alternatives] has
	// them: of a delegate. Choice is the one that Output goes to; nil for the first.
	Outcomes []string
	Choice   *Choice

	// Schema is the JSON Schema that the final output must fit, or nil.
	Schema any

	// Tools are definitions that the request brings, by name.
	Tools map[string]any

	// Planner, if it is set, is asked at every tick for the calls and the output, in place of those
	// above. A [*Planning] has a model asked.
	Planner Planner

	// Bridge has a model that plans the request as a delegate see the arguments of its call
	// though they break the schema that Context declares for the input, with that schema beside
	// them (protocol §8).
	Bridge bool

	// Scopes limit the kinds that the planner sees; nil for all of the context.
	Scopes []store.Path

	// Shown are the kinds that the model that has given the calls was shown; nil for others.
	Shown []Shown

	kept *atomic.Pointer[keptPlan] // see [Request.Keep]; nil for a request that does not keep it
}

// SetMode replaces the mode of the plan by that of a run, if it has one.
func (r *Request) SetMode(mode string) {
	if mode == "" {
		return
	}
	r.Released = r.Mode == ModeLazy && mode == ModeEager
	r.Mode = mode
}

// Lists is [schema.Schema.Lists] by the schema that the request's messages declare for a kind
// last, for a value that is to enter it.
func (r *Request) Lists(kind string, v any, options ...schema.Option) any {
	return r.Declared(kind, options).Lists(v)
}

// Declared is the schema that the request's messages declare for a kind last; nil for none, and for
// an invalid one, which is reported when the request is checked.
func (r *Request) Declared(kind string, options []schema.Option) *schema.Schema {
	var declared any
	for _, m := range r.Context {
		if m.Kind == kind && m.Schema != nil {
			declared = m.Schema
		}
	}
	if declared == nil {
		return nil
	}
	schema, _ := schema.New(declared, options...)
	return schema
}

// Source is a call as written, and the line of the file that it begins on, 0
// if that is not known.
type Source struct {
	// Call is an object with _tool: a map[string]any, or anything else that [store.FromGo] makes an
	// object of, such as a struct with tags. Its parameters may be of the types of the value of a
	// [Result]; the activity gets them as an [Invocation] says. A value that JSON lacks gives a
	// [*PlanError]. The call is not copied, and must not be changed any more.
	Call any
	Line int

	position int // in the plan as written, from 1; 0 if it is the call's own position
	// Accepted as part of another plan, maybe by an older version: unknown properties are ignored.
	Accepted bool
	// ByModel is set for a call that a model planned; nil also in logs of older versions.
	ByModel *ByModel
	// Dropped is set for a call that a person has dropped from the plan: it keeps its position, and
	// reads and writes nothing.
	Dropped bool
}

// ByModel says how a model planned a call. What a latent one has as _output is the model's answer,
// which counts only if the model was shown, whole, what the call reads (protocol §5); null is none.
type ByModel struct {
	Model string // its name; asked where neither the call nor the registry has another one
	Lazy  bool   // the plan is lazy
	Every bool   // the call stands, with others, for one call for every instance
}
