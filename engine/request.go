package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	return r.declared(kind, options).Lists(v)
}

// declared is the schema that the request's messages declare for a kind last; nil for none, and
// for what is none, which is told when the request is checked.
func (r *Request) declared(kind string, options []SchemaOption) *Schema {
	var declared any
	for _, m := range r.Context {
		if m.Kind == kind && m.Schema != nil {
			declared = m.Schema
		}
	}
	if declared == nil {
		return nil
	}
	schema, _ := NewSchema(declared, options...)
	return schema
}

// MissingInput tells what is wrong with a run that gets no input, where the request's messages
// declare the schema of input: a [*MessageError], or nil. Input that those messages give, or that
// the run's context has in a log, is none that is missing; the log is nil for a new context.
func (s *Start) MissingInput(ctx context.Context, log store.Log, options ...SchemaOption) error {
	gives := func(m store.Message) bool { return m.Kind == "input" && m.HasData }
	if s.Input != nil || s.HasInput || slices.ContainsFunc(s.Request.Context, gives) {
		return nil
	}
	schema, path := s.Request.declared("input", options), store.KindPath("input")
	if schema == nil {
		return nil
	}
	broken := schema.Validate(map[string]any{}, path.String())
	if broken == nil {
		return nil
	}
	if log != nil {
		given, err := store.Resolver{Log: log, Context: s.Context}.Resolve(ctx, path, "")
		if err == nil && given.Exists || err != nil && !errors.Is(err, store.ErrNoContext) {
			return nil // what is wrong with the log is told by the run
		}
	}
	return &MessageError{Input: true, Err: fmt.Errorf("there is none, and it breaks the schema declared for input: %w", broken)}
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
