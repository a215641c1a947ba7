package engine

import "obelus/store"

// Request is what a plan file says: calls, or a planner that gives them, and
// what goes with them.
type Request struct {
	Name    string          // the plan file as the user knows it, "plans/refund.lua"
	Context []store.Message // appended before the plan
	Calls   []Source        // in the order of the plan
	Mode    string          // "eager", "lazy", or empty for eager

	// Output is the final output, in which references are resolved when all
	// calls have settled; HasOutput tells null from none.
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

// Source is a call as written, and the line of the file that it begins on, 0
// if that is not known. The call is not copied, and must not be changed any more.
type Source struct {
	Call any
	Line int

	position int // in the plan as written, from 1; 0 if it is where the call stands
}
