package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"obelus/engine/numeral"
	"obelus/engine/visible"
	"obelus/store"
)

// field is an input of a form for a value that a JSON Schema describes. The schema chooses the
// input alone: the server checks the value.
type field struct {
	Name        string // the place in the value: keys with dots between them
	Label       string
	Kind        string // text, lines (a text of several), number, boolean, choice, json, or large
	Value       string // as it is shown
	Options     []option
	Required    bool
	Nullable    bool
	IsNull      bool
	Description string
	Hint        string // of the schema, for people: "integer, at least 1"
	Error       string
	Depth       int
	Group       string // the heading of an object, which has no input of its own
}

// option is a choice: its value as JSON, and how it is shown.
type option struct {
	Value, Text string
	Picked      bool
}

// Prefixes of the names of inputs, before the name of a field.
const (
	valueOf = "value:"
	nullOf  = "null:"
)

// mostDepth is how deep objects are that have an input for each of their properties.
const mostDepth = 4

// fieldsOf returns the inputs for the properties of a schema, with the values that are there.
func fieldsOf(schema any, value any) []field { return appendFields(nil, schema, value, "", 0) }

func appendFields(fields []field, schema, value any, at string, depth int) []field {
	object, _ := schema.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	values, _ := value.(map[string]any)
	required, _ := object["required"].([]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		if hasInput(name) {
			names = append(names, name)
		}
	}
	isRequired := func(name string) bool { return slices.Contains(required, any(name)) }
	slices.SortFunc(names, func(a, b string) int { // what must be given comes first
		if x, y := isRequired(a), isRequired(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		given, has := values[name]
		of, _ := properties[name].(map[string]any)
		f := field{Name: joinName(at, name), Label: name, Required: isRequired(name), Depth: depth}
		if !has {
			given, has = of["default"], of["default"] != nil
		}
		f.Description, _ = of["description"].(string)
		f.describe(of)
		if f.Kind == "object" {
			fields = append(fields, field{Group: f.Label, Depth: depth, Description: f.Description, Required: f.Required})
			fields = appendFields(fields, of, given, f.Name, depth+1)
			continue
		}
		if has {
			f.show(given)
		}
		fields = append(fields, f)
	}
	return fields
}

// hasInput reports whether a property may have an input: dots separate the keys in names of inputs,
// and what begins with _ is the engine's.
func hasInput(name string) bool {
	return name != "" && !strings.HasPrefix(name, "_") && !strings.Contains(name, ".")
}

func joinName(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// describe picks the input by the schema.
func (f *field) describe(of map[string]any) {
	types := typesOf(of)
	f.Nullable = slices.Contains(types, "null") && len(types) > 1
	types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	f.Kind = "json"
	if len(types) == 1 {
		switch types[0] {
		case "string":
			f.Kind = "text"
		case "number", "integer":
			f.Kind = "number"
		case "boolean":
			f.Kind = "boolean"
			f.Options = []option{{Value: "true", Text: "true"}, {Value: "false", Text: "false"}}
		case "object":
			if isPlainObject(of) && strings.Count(f.Name, ".") < mostDepth {
				f.Kind = "object"
			}
		}
		f.Hint = types[0]
	}
	if choices, ok := of["enum"].([]any); ok {
		f.Kind, f.Hint, f.Options = "choice", "", nil
		for _, c := range choices {
			text := encode(c)
			shown := text
			if s, ok := c.(string); ok {
				shown = s
			}
			f.Options = append(f.Options, option{Value: text, Text: shown})
		}
	}
	for _, bound := range []struct{ keyword, words string }{
		{"minimum", "≥ "}, {"exclusiveMinimum", "> "}, {"maximum", "≤ "}, {"exclusiveMaximum", "< "}, {"minLength", "at least characters: "}, {"maxLength", "at most characters: "},
		{"format", ""}, {"pattern", "matches "},
	} {
		if v, ok := of[bound.keyword]; ok {
			text := encode(v)
			if s, ok := v.(string); ok {
				text = s
			}
			f.Hint = strings.TrimPrefix(f.Hint+", "+bound.words+text, ", ")
		}
	}
}

// typesOf returns the types that a schema names.
func typesOf(of map[string]any) (types []string) {
	switch t := of["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, v := range t {
			if s, ok := v.(string); ok {
				types = append(types, s)
			}
		}
	}
	return types
}

// isPlainObject reports whether a schema has an input for each property.
func isPlainObject(of map[string]any) bool {
	properties, ok := of["properties"].(map[string]any)
	if !ok || len(properties) == 0 {
		return false
	}
	for name := range properties {
		if !hasInput(name) {
			return false
		}
	}
	return true
}

// show puts a value into the input.
func (f *field) show(v any) {
	text := encode(v)
	f.IsNull = v == nil
	s, isText := v.(string)
	switch {
	case v == nil:
	case f.Kind == "text" && isText && s == visible.Text(s) && !strings.ContainsAny(s, "\r\uFFFD"): // an input gives it back
		f.Value = s
		if strings.Contains(s, "\n") {
			f.Kind = "lines"
		}
	case f.Kind == "text":
		f.Kind, f.Value = "json", text
	case f.Kind == "number":
		f.Value = text
	case f.Kind == "boolean" || f.Kind == "choice":
		for i := range f.Options {
			f.Options[i].Picked = f.Options[i].Value == text
		}
		f.Value = text
	default:
		f.Value = text
	}
	if len(f.Value) > mostInput {
		f.Kind, f.Value, f.Options = "large", cutText(f.Value, mostText), nil
		f.Hint = "too large for an input: " + numeral.Size(int64(len(text)))
	}
}

// mostInput bounds a value that has an input, in bytes.
const mostInput = 16 << 10

// refill puts the values of a form into the inputs, and the text of an error beside the field that
// it names.
func refill(fields []field, form url.Values, message string) {
	best := -1
	for i := range fields {
		f := &fields[i]
		if f.Group != "" || f.Kind == "large" {
			continue
		}
		f.Value, f.IsNull = form.Get(valueOf+f.Name), form.Has(nullOf+f.Name)
		for j := range f.Options {
			f.Options[j].Picked = f.Options[j].Value == f.Value
		}
		if names(message, f.Name) && (best < 0 || len(f.Name) > len(fields[best].Name)) {
			best = i
		}
	}
	if best >= 0 {
		fields[best].Error = message
	}
}

// names reports whether a message is about a place in a value.
func names(message, place string) bool {
	last := place[strings.LastIndex(place, ".")+1:]
	for _, text := range []string{"." + place, `"` + place + `"`, `"` + last + `"`, "'" + last + "'", place + ":", "at " + place + " "} {
		if strings.Contains(message, text) {
			return true
		}
	}
	return false
}

// fieldError is a value that a form sent and that is none.
type fieldError struct{ name, text string }

func (e *fieldError) Error() string { return e.name + ": " + e.text }

// valueFrom returns the JSON of the object that a form's inputs describe. Inputs that are empty are
// left out. A number is sent as it was typed, and another text as a text, for the server to
// refuse.
func valueFrom(fields []field, form url.Values) (json.RawMessage, error) {
	if raw := strings.TrimSpace(form.Get("raw")); raw != "" {
		if err := store.CheckEncoding([]byte(raw)); err != nil {
			return nil, &fieldError{"raw JSON", err.Error()}
		}
		if _, err := store.DecodeJSON([]byte(raw)); err != nil {
			return nil, &fieldError{"raw JSON", err.Error()}
		}
		return json.RawMessage(raw), nil
	}
	root := &object{}
	for _, f := range fields {
		if f.Group != "" {
			continue
		}
		text, given, err := f.read(form)
		if err != nil {
			return nil, err
		}
		if given {
			root.set(strings.Split(f.Name, "."), text)
		}
	}
	return root.json(), nil
}

// read returns the JSON of an input.
func (f *field) read(form url.Values) (text string, given bool, err error) {
	if form.Has(nullOf + f.Name) {
		return "null", true, nil
	}
	value := form.Get(valueOf + f.Name)
	isText := f.Kind == "text" || f.Kind == "lines"
	if value == "" || !isText && strings.TrimSpace(value) == "" {
		return "", false, nil
	}
	value = strings.ReplaceAll(value, "\r\n", "\n")
	switch trimmed := strings.TrimSpace(value); {
	case isText:
		return string(store.EncodeJSON(value)), true, nil
	case f.Kind == "number":
		if json.Valid([]byte(trimmed)) && strings.ContainsAny(trimmed[:1], "-0123456789") {
			return trimmed, true, nil
		}
		return string(store.EncodeJSON(trimmed)), true, nil
	default:
		if _, err := store.DecodeJSON([]byte(trimmed)); err != nil {
			return "", false, &fieldError{f.Name, fmt.Sprintf("it must be JSON (a text in quotes, [ ] for a list): %s", err)}
		}
		return trimmed, true, nil
	}
}

// object is an object of JSON texts, in the order in which they were set.
type object struct {
	keys   []string
	values map[string]any // a text of JSON, or an object
}

func (o *object) set(path []string, text string) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if _, known := o.values[path[0]]; !known {
		o.keys = append(o.keys, path[0])
	}
	if len(path) == 1 {
		o.values[path[0]] = text
		return
	}
	inner, ok := o.values[path[0]].(*object)
	if !ok {
		inner = &object{}
		o.values[path[0]] = inner
	}
	inner.set(path[1:], text)
}

func (o *object) json() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(store.EncodeJSON(key))
		b.WriteByte(':')
		switch v := o.values[key].(type) {
		case string:
			b.WriteString(v)
		case *object:
			b.Write(v.json())
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// corrections returns the fields whose input differs from what it was shown with, by their names,
// as JSON; nil for none.
func corrections(fields []field, form url.Values) (map[string]json.RawMessage, error) {
	var set map[string]json.RawMessage
	for _, f := range fields {
		if f.Group != "" || !form.Has(valueOf+f.Name) {
			continue
		}
		if strings.ReplaceAll(form.Get(valueOf+f.Name), "\r\n", "\n") == f.Value && form.Has(nullOf+f.Name) == f.IsNull {
			continue
		}
		text, given, err := f.read(form)
		if err != nil {
			return nil, err
		}
		if !given {
			if f.Kind != "text" && f.Kind != "lines" {
				return nil, &fieldError{f.Name, "give a value: a correction can't take an argument away"}
			}
			text = `""`
		}
		if set == nil {
			set = map[string]json.RawMessage{}
		}
		set[f.Name] = json.RawMessage(text)
	}
	return set, nil
}

// withUnknown adds inputs for values that the schema does not describe.
func withUnknown(fields []field, values map[string]any) []field {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		known := slices.ContainsFunc(fields, func(f field) bool { return f.Label == name && f.Depth == 0 || f.Group == name && f.Depth == 0 })
		if known || !hasInput(name) {
			continue
		}
		f := field{Name: name, Label: name, Kind: "json"}
		if _, ok := values[name].(string); ok {
			f.Kind = "text"
		}
		f.show(values[name])
		fields = append(fields, f)
	}
	return fields
}

// covers reports whether the inputs show all of an object: sent as they are, they would give it.
func covers(fields []field, values map[string]any) bool {
	form := url.Values{}
	for _, f := range fields {
		form.Set(valueOf+f.Name, f.Value)
		if f.IsNull {
			form.Set(nullOf+f.Name, "on")
		}
	}
	text, err := valueFrom(fields, form)
	if err != nil {
		return false
	}
	shown, err := store.DecodeJSON(text)
	return err == nil && encode(shown) == encode(values)
}
