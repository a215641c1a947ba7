package plan

import (
	"context"
	"strings"
	"testing"

	"obelus/engine/schema"
	"obelus/store"
)

// TestKnownTypes_OfSchemas holds what is known of the values of a schema, at a place in them.
func TestKnownTypes_OfSchemas(t *testing.T) {
	for _, test := range []struct{ schema, at, want string }{
		{`{"type": "string"}`, "", "string"},
		{`{"type": ["string", "null"]}`, "", "null or string"},
		{`{"const": 5}`, "", "number"},
		{`{"enum": ["a", "b", 1]}`, "", "number or string"},
		{`{"type": "string", "enum": ["a", 1]}`, "", "string"},
		{`{"anyOf": [{"type": "string"}, {"const": 1}]}`, "", "number or string"},
		{`{"anyOf": [{"type": "string"}, {}]}`, "", ""},
		{`{"anyOf": [{"type": "string"}, true]}`, "", ""},
		{`{"oneOf": [{"$ref": "#/$defs/n"}, {"type": "null"}], "$defs": {"n": {"type": "integer"}}}`, "", "integer or null"},
		{`{"allOf": [{"type": ["string", "number"]}, {"type": ["number", "null"]}]}`, "", "number"},
		{`{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}`, "", ""},
		{`{"$ref": "#"}`, "", ""},
		{`{"$ref": "https://example.com/x"}`, "", ""},
		{`{"properties": {"a": {"items": {"type": "boolean"}}}}`, "a.0", "boolean"},
		{`{"prefixItems": [{"type": "string"}], "items": {"type": "null"}}`, "0", "string"},
		{`{"prefixItems": [{"type": "string"}], "items": {"type": "null"}}`, "1", "null"},
		{`{"allOf": [{"properties": {"a": {"type": "string"}}}]}`, "a", "string"},
		{`{"$ref": "#/$defs/o", "$defs": {"o": {"properties": {"a": {"type": "string"}}}}}`, "a", "string"},
		{`{"additionalProperties": {"type": "string"}}`, "a", ""},
		{`{}`, "a.b.c", ""},
		{`true`, "a", ""},
	} {
		decoded, err := store.DecodeJSON([]byte(test.schema))
		if err != nil {
			t.Fatal(err)
		}
		var segments []string
		if test.at != "" {
			segments = strings.Split(test.at, ".")
		}
		if got := (schema.Node{Root: decoded, At: decoded}).Descendant(segments).Possible().String(); got != test.want {
			t.Errorf("%s at %q: got %q, want %q", test.schema, test.at, got, test.want)
		}
	}
}

// TestTypes_PossibleIsSilent holds that only what can't be right is an error.
func TestTypes_PossibleIsSilent(t *testing.T) {
	registry := NewRegistry()
	for name, schema := range map[string]string{
		"text":    `{"_output": {"type": "string"}}`,
		"maybe":   `{"_output": {"type": ["string", "number"]}}`,
		"whole":   `{"_output": {"type": "integer"}}`,
		"nothing": `{}`,
		"wants":   `{"properties": {"n": {"type": "number"}}}`,
	} {
		v, err := store.DecodeJSON([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if registry.Tools[name], err = NewTool(name, v); err != nil {
			t.Fatal(err)
		}
		registry.Activities[name] = &Registered{Name: name, Activity: ActivityFunc(func(context.Context, Invocation) (Result, error) { return Result{}, nil })}
	}
	wants := Source{Call: map[string]any{"_tool": "wants", "n": "†state.a", "_outputPath": "†state.z"}}
	writes := func(tool, path string, more ...string) Source {
		call := map[string]any{"_tool": tool, "_outputPath": path}
		for i := 0; i+1 < len(more); i += 2 {
			call[more[i]] = more[i+1]
		}
		return Source{Call: call}
	}
	exists := func(path store.Path, _ string) (bool, error) { return path.String() == "†state.a", nil }
	for _, test := range []struct {
		name   string
		calls  []Source
		exists Exists
		wrong  bool
	}{
		{"another type", []Source{writes("text", "†state.a"), wants}, NothingExists, true},
		{"a type that may be", []Source{writes("maybe", "†state.a"), wants}, NothingExists, false},
		{"an integer for a number", []Source{writes("whole", "†state.a"), wants}, NothingExists, false},
		{"nothing known", []Source{writes("nothing", "†state.a"), wants}, NothingExists, false},
		{"two writers", []Source{writes("text", "†state.a"), writes("whole", "†state.a"), wants}, NothingExists, false},
		{"a value that is there before", []Source{writes("text", "†state.a"), wants}, exists, false},
		{"what may be a failure", []Source{writes("whole", "†state.b || †state.a"), wants}, NothingExists, false},
		{"what a failure may replace", []Source{writes("text", "†state.a || †state.a"), wants}, NothingExists, false},
		{"what a failure may stand in", []Source{writes("text", "†state.a || †state.a.error"), wants}, NothingExists, false},
		{"what is read deeper", []Source{writes("text", "†state"), wants}, NothingExists, false},
		{"a plan that was accepted", []Source{writes("text", "†state.a"), {Call: wants.Call, Accepted: true}}, NothingExists, false},
		{"a list that it joins", []Source{writes("text", "†state.a", "_outputMethod", "push"), wants}, NothingExists, false},
		{"a part of it", []Source{writes("text", "†state.a.b"), wants}, NothingExists, false},
		{"another instance's", []Source{writes("text", "†state.a", "_instance", "①"), wants}, NothingExists, false},
		{"an alternative", []Source{writes("text", "†state.a"), {Call: map[string]any{"_tool": "wants", "n": "†state.a || 5", "_outputPath": "†state.z"}}}, NothingExists, false},
	} {
		_, err := Compile(&Request{Calls: test.calls}, registry, test.exists)
		if wrong := err != nil && strings.Contains(err.Error(), "wants number"); wrong != test.wrong {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestTypes_Given: a value that the request itself gives is of the type that it declares.
func TestTypes_Given(t *testing.T) {
	message := func(kind, data, declared string) store.Message {
		m := store.Message{Type: store.TypeData, Kind: kind}
		if data != "" {
			v, err := store.DecodeJSON([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			m.Data = store.Some(v)
		}
		if declared != "" {
			m.Schema = map[string]any{"properties": map[string]any{"a": map[string]any{"type": declared}}}
		}
		return m
	}
	wants, err := store.DecodeJSON([]byte(`{"properties": {"n": {"type": "number"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	registry := NewRegistry()
	if registry.Tools["wants"], err = NewTool("wants", wants); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		context []store.Message
		exists  Exists
		wrong   bool
	}{
		{"with the schema", []store.Message{message("state", `{"a": "x"}`, "string")}, EverythingExists, true},
		{"after the schema", []store.Message{message("state", "", "string"), message("state", `{"a": "x"}`, "")}, EverythingExists, true},
		{"before the schema", []store.Message{message("state", `{"a": 1}`, ""), message("state", "", "string")}, EverythingExists, false},
		{"in the log alone", []store.Message{message("state", `{"b": "x"}`, "string")}, EverythingExists, false},
		{"nowhere", []store.Message{message("state", `{"b": "x"}`, "string")}, NothingExists, true},
		{"of the right type", []store.Message{message("state", `{"a": 1}`, "integer")}, EverythingExists, false},
	} {
		request := &Request{Context: test.context, Calls: []Source{{Call: map[string]any{"_tool": "wants", "n": "†state.a"}}}}
		_, err := CompileForDisplay(request, registry, test.exists)
		if wrong := err != nil && strings.Contains(err.Error(), "wants number"); wrong != test.wrong {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
