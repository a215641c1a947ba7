// Package api describes the operations of a server for clients: as an OpenAPI document, and as a
// page.
package api

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"obelus/engine/schema"
)

// Schema is a JSON Schema of draft 2020-12.
type Schema = map[string]any

// Operation describes a request that the server answers, and its answers.
type Operation struct {
	ID         string // a name for programs
	Method     string
	Path       string // with {names} of its parts; a last part {name...} may have slashes
	Role       string // that a token needs; empty for a request without a token
	Tag        string // one of [Tags]
	Summary    string // a line
	Detail     string // more about it; may be empty
	Parameters []Parameter
	Body       Schema // nil for none
	BodyType   string // media type of the body; empty for JSON
	Example    string // of a body, or a query that begins with ?; may be empty
	Answers    []Answer
}

// Parameter describes a part of the path, or a parameter of the query.
type Parameter struct {
	Name, In string // path or query
	About    string
	Schema   Schema
	Required bool
	Example  string // of a part of the path
}

// Type names the type of its values.
func (p Parameter) Type() string { return typeOf(p.Schema) }

// Answer is an answer that is no error.
type Answer struct {
	Status int
	Type   string // media type; empty for JSON
	About  string
	Schema Schema // nil for an answer that is no JSON
}

// Fields names the fields of the answer, or of the elements of a list; "" for an answer that has
// none.
func (a Answer) Fields() string {
	object, format := a.Schema, ` {"%s"}`
	if items, ok := object["items"].(Schema); ok {
		object, format = items, ` [{"%s"}]`
	}
	properties, _ := object["properties"].(Schema)
	if len(properties) == 0 {
		return ""
	}
	return fmt.Sprintf(format, strings.Join(slices.Sorted(maps.Keys(properties)), `", "`))
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

// Text is the schema of a string.
func Text() Schema { return Schema{"type": "string"} }

// Positive is the schema of a whole number above 0.
func Positive() Schema { return Schema{"type": "integer", "minimum": 1} }

// Boolean is the schema of true and false.
func Boolean() Schema { return Schema{"type": "boolean"} }

// Any is the schema of every value.
func Any() Schema { return Schema{} }

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

// Of is [OfType] of a type that is known.
func Of[T any]() Schema { return OfType(reflect.TypeFor[T]()) }

// OfType returns the schema of an answer that has a Go type, as encoding/json writes it. It may
// have more fields in time.
func OfType(t reflect.Type) Schema {
	if t.Kind() == reflect.Interface {
		return Any()
	}
	if t.Kind() == reflect.Pointer { // an answer is never null
		t = t.Elem()
	}
	s := must(schema.ForEncoding(t))
	open(s)
	return s
}

// Body returns the schema of a request with some fields, as encoding/json reads it. required names
// those that it must have.
func Body(fields []reflect.StructField, required []string) Schema {
	s := must(schema.ForDecoding(reflect.StructOf(fields)))
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
