// Package api describes the routes of a server for clients: as an OpenAPI document, and as a page.
package api

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"obelus/engine/schema"
)

// Schema is a JSON Schema of draft 2020-12.
type Schema = map[string]any

// Route is a path with a method, and its operation.
type Route struct {
	Method string
	Path   string   // with {names} of its parts; a last part {name...} may have slashes
	Role   string   // that a token needs; empty for a route without a token
	Query  []string // names of its parameters
	Operation
}

// Operation describes the requests and answers of a route.
type Operation struct {
	ID      string // a name for programs
	Tag     string // one of [Tags]
	Summary string // a line
	Detail  string // more about it; may be empty

	// Query describes parameters by their names, where [Parameters] says less.
	Query map[string]string

	Body     Schema // of the request; nil for none
	BodyType string // media type of the request; empty for JSON
	Example  string // of a body, or a query that begins with ?; may be empty

	Answers []Answer
}

// Answer is an answer that is no error.
type Answer struct {
	Status int
	Type   string // media type; empty for JSON
	About  string
	Schema Schema // nil for an answer that is no JSON
}

// OK returns the answers of an operation that has one, with status 200.
func OK(about string, s Schema) []Answer {
	return []Answer{{Status: http.StatusOK, About: about, Schema: s}}
}

// Events returns the answers of an operation that streams server-sent events.
func Events(about string) []Answer {
	return []Answer{{Status: http.StatusOK, Type: "text/event-stream", About: about}}
}

// Tag is a subject of routes.
type Tag struct{ Name, About string }

// Tags are the subjects, in the order of the page.
var Tags = []Tag{
	{"runs", "Start, list and cancel runs."},
	{"contexts", "Read a context: its messages, calls and values, and their origins."},
	{"decisions", "Approve, reject, correct, resume, fork, append."},
	{"project", "The project's plans, tools and scripts."},
	{"server", "The server itself."},
}

// Parameter describes a parameter of paths and queries.
type Parameter struct {
	About   string
	Schema  Schema
	Example string // in a path
}

// Parameters are the parameters by their names.
var Parameters = map[string]Parameter{
	"call":       {"The number of a call: its tick and its position, such as 1.2.", Text(), "1.2"},
	"context":    {"The name of a context.", Schema{"type": "string", "pattern": "^[A-Za-z0-9._-]+$"}, "order-7"},
	"file":       {"The file of a plan, below plans/.", Text(), "refund.lua"},
	"generation": {"The digest of a generation, as records of calls have it.", Text(), "GENERATION"},
	"hook":       {"The name of a hook in the setting serve.hooks.", Text(), "github"},
	"path":       {"The path of a script below the project's folder.", Text(), "activities/billing.lua"},

	"a":        {"The context to compare.", Text(), ""},
	"a_at":     {"The seq as of which a counts; the newest unless it is given.", Positive(), ""},
	"after":    {"The seq after which to begin.", Schema{"type": "integer", "minimum": 0}, ""},
	"all":      {"true adds the contexts of delegates.", Boolean(), ""},
	"at":       {"The seq as of which to answer; the newest unless it is given.", Positive(), ""},
	"b":        {"The context to compare with; a unless it is given.", Text(), ""},
	"b_at":     {"The seq as of which b counts; the newest unless it is given.", Positive(), ""},
	"by":       {"The name that the client gives itself; recorded as claimed.", Text(), ""},
	"cursor":   {"The next of the page before.", Text(), ""},
	"depth":    {"How many levels of objects and arrays to show; all unless it is given. Instead of one that is deeper and not empty stands {\"…\": \"array\", \"entries\": 12}.", Positive(), ""},
	"held":     {"true picks runs that wait for a person's decision.", Boolean(), ""},
	"inbox":    {"Follow only the number of decisions that wait for a person.", Schema{"type": "string", "enum": []any{"", "true", "false"}}, ""},
	"instance": {"The instance whose values count; the global ones unless it is given.", Text(), ""},
	"kind":     {"Messages of this kind.", Text(), ""},
	"label":    {"A label as NAME=VALUE; may be given several times.", Schema{"type": "array", "items": Text()}, ""},
	"level":    {"Lines from this level on.", Schema{"type": "string", "enum": []any{"debug", "info", "warn", "error"}}, ""},
	"limit":    {"At most so many.", Positive(), ""},
	"newest":   {"true begins at the end.", Boolean(), ""},
	"retrying": {"Only runs with calls that pause before another attempt.", Boolean(), ""},
	"waiting":  {"Only runs that wait for this path.", Text(), "†input.receipt"},
	"parent":   {"The contexts of the delegates of this context.", Text(), ""},
	"plan":     {"Runs of this plan's file.", Text(), ""},
	"prefix":   {"Contexts whose names begin so.", Text(), ""},
	"q":        {"Text in the name, the plan or a label, in any case.", Text(), ""},
	"ref":      {"A path such as state.user, or an expression.", Text(), ""},
	"since":    {"From this time on.", Schema{"type": "string", "format": "date-time"}, ""},
	"status":   {"Those with one of these statuses, a list with commas.", Text(), ""},
	"tick":     {"The tick; all of them unless it is given.", Positive(), ""},
	"tool":     {"Calls of this tool.", Text(), ""},
	"until":    {"Before this time.", Schema{"type": "string", "format": "date-time"}, ""},
}

// Text is the schema of a string.
func Text() Schema { return Schema{"type": "string"} }

// Positive is the schema of a whole number above 0.
func Positive() Schema { return Schema{"type": "integer", "minimum": 1} }

// Boolean is the schema of true and false.
func Boolean() Schema { return Schema{"type": "boolean"} }

// Any is the schema of every value.
func Any() Schema { return Schema{} }

// Nullable is the schema of a value or null.
func Nullable(s Schema) Schema {
	return Schema{"anyOf": []any{s, Schema{"type": "null"}}}
}

// List is the schema of an array.
func List(items Schema) Schema { return Schema{"type": "array", "items": items} }

// Object is the schema of an object. A field whose name ends with ? may be left out.
func Object(fields Schema) Schema {
	properties, required := Schema{}, []any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		known, optional := strings.CutSuffix(name, "?")
		if properties[known] = fields[name]; !optional {
			required = append(required, known)
		}
	}
	return Schema{"type": "object", "properties": properties, "required": required}
}

// Of returns the schema of an answer that has a Go type, as encoding/json writes it. It may have
// more fields in time.
func Of[T any]() Schema {
	s := must(schema.ForEncoding(reflect.TypeFor[T]()))
	open(s)
	return s
}

// Body returns the schema of a request that has a Go type, as encoding/json reads it. required
// names the fields that it must have.
func Body[T any](required ...string) Schema {
	s := must(schema.ForDecoding(reflect.TypeFor[T]()))
	delete(s, "required")
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// must returns a schema. It panics for a type without one, which a test that describes all routes
// finds.
func must(s map[string]any, err error) Schema {
	if err != nil {
		panic(fmt.Sprintf("a type of the API has no schema: %v", err))
	}
	return s
}

// open lets the objects of a schema have further fields.
func open(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["additionalProperties"] == false {
			delete(v, "additionalProperties")
		}
		for _, below := range v {
			open(below)
		}
	case []any:
		for _, below := range v {
			open(below)
		}
	}
}

// Parts returns the names of the parts of a route's path.
func (r *Route) Parts() (names []string) {
	for _, part := range strings.Split(r.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(strings.TrimSuffix(name, "}"), "..."))
		}
	}
	return names
}

// parameter describes a parameter of a route.
func (r *Route) parameter(name string) Parameter {
	p := Parameters[name]
	if about := r.Operation.Query[name]; about != "" {
		p.About = about
	}
	return p
}
