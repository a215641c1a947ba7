package engine

import (
	"fmt"

	"obelus/store"
)

// Request is what a plan file says: calls, or a planner that gives them, and
// what goes with them. Its values may be anything that [store.FromGo] takes.
type Request struct {
	Name    string          // the plan file as the user knows it, "plans/refund.lua"
	Context []store.Message // appended before the plan
	Calls   []Source        // in the order of the plan
	Mode    string          // "eager", "lazy", or empty for eager; anything else is refused

	// Output is the final output, in which references are resolved when all
	// calls have settled; HasOutput tells a nil that is null from none. As for a call, what is
	// there of before does not count where a call of the plan may write and has not.
	Output     any
	HasOutput  bool
	OutputLine int // where it stands in the file, 0 if not known

	// Schema is the JSON Schema that the final output must fit, or nil.
	Schema any

	// Tools are definitions that the request brings, by name.
	Tools map[string]any

	// Planner, if it is set, is asked at every tick for the calls and the
	// output, in place of those above.
	Planner Planner

	// Scopes is what the planner sees; nil for all of the context.
	Scopes []store.Path
}

// Lists is [Schema.Lists] by the schema that the request's messages declare for a kind
// last, for a value that is to enter it.
func (r *Request) Lists(kind string, v any, options ...SchemaOption) any {
	var declared any
	for _, m := range r.Context {
		if m.Kind == kind && m.Schema != nil {
			declared = m.Schema
		}
	}
	if declared == nil {
		return v
	}
	schema, _ := NewSchema(declared, options...) // what is wrong with it is told when the request is checked
	return schema.Lists(v)
}

// MissingInput tells what is wrong with a run that gets no input, where the request's messages
// declare the schema of input and give none themselves: a [*MessageError], or nil.
func (r *Request) MissingInput(options ...SchemaOption) error {
	var declared any
	for _, m := range r.Context {
		if m.Kind != "input" {
			continue
		}
		if m.HasData {
			return nil
		}
		if m.Schema != nil {
			declared = m.Schema
		}
	}
	if declared == nil {
		return nil
	}
	schema, err := NewSchema(declared, options...)
	if err != nil {
		return nil // which is told when the request is checked
	}
	if err := schema.Validate(map[string]any{}, store.KindPath("input").String()); err != nil {
		return &MessageError{Input: true, Err: fmt.Errorf("there is none, and it breaks the schema declared for input: %w", err)}
	}
	return nil
}

// Source is a call as written, and the line of the file that it begins on, 0
// if that is not known.
type Source struct {
	// Call is an object with _tool: a map[string]any, or anything else that
	// [store.FromGo] makes an object of, such as a struct with tags. Its
	// parameters may be what the value of a [Result] may be; the activity gets
	// them as an [Invocation] says. What JSON doesn't have is a [*PlanError]. The
	// call is not copied, and must not be changed any more.
	Call any
	Line int

	position int  // in the plan as written, from 1; 0 if it is where the call stands
	accepted bool // as part of another plan, maybe by an older version: what it has beyond what is known is passed over
}
