package fit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/host/model/fit"
	"obelus/store"
)

// decoded reads JSON text.
func decoded(t testing.TB, text string) any {
	t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func text(t testing.TB, v any) string {
	t.Helper()
	made, err := fit.JSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(made)
}

func dialect(t testing.TB, name string) fit.Dialect {
	t.Helper()
	d, ok := fit.DialectOf(name)
	if !ok {
		t.Fatalf("there is no dialect %s", name)
	}
	return d
}

func mustFit(t testing.TB, schema any, name string) fit.Fitted {
	t.Helper()
	fitted, err := fit.Schema(schema, dialect(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}

// TestSchema_Keywords compares how each dialect takes one schema, as the property p of an object.
func TestSchema_Keywords(t *testing.T) {
	for _, test := range []struct {
		schema string
		want   map[string]string // by dialect; "*" for those not named
	}{
		{`{"type": "string", "minLength": 2, "pattern": "^a+$", "format": "email", "default": "a", "x-note": 5}`, map[string]string{
			"openai":    `{"type":"string","format":"email","pattern":"^a+$","description":"{default: \"a\", minLength: 2}"}`,
			"anthropic": `{"type":"string","format":"email","pattern":"^a+$","description":"{default: \"a\", minLength: 2}"}`,
			"gemini":    `{"type":"string","description":"{default: \"a\", format: \"email\", minLength: 2, pattern: \"^a+$\"}"}`,
			"plain":     `{"type":"string","minLength":2,"description":"{default: \"a\", format: \"email\", pattern: \"^a+$\"}"}`,
			"*":         `{"type":"string","pattern":"^a+$","description":"{default: \"a\", format: \"email\", minLength: 2}"}`,
		}},
		{`{"type": "integer", "minimum": 0, "exclusiveMaximum": 9, "multipleOf": 3, "description": "N"}`, map[string]string{
			"openai":    `{"type":"integer","exclusiveMaximum":9,"minimum":0,"multipleOf":3,"description":"N"}`,
			"plain":     `{"type":"integer","exclusiveMaximum":9,"minimum":0,"multipleOf":3,"description":"N"}`,
			"anthropic": `{"type":"integer","description":"N {exclusiveMaximum: 9, minimum: 0, multipleOf: 3}"}`,
			"gemini":    `{"type":"integer","minimum":0,"description":"N {exclusiveMaximum: 9, multipleOf: 3}"}`,
			"*":         `{"type":"integer","exclusiveMaximum":9,"minimum":0,"description":"N {multipleOf: 3}"}`,
		}},
		{`{"type": "string", "minLength": 2, "format": "date"}`, map[string]string{
			"openai": `{"type":"string","format":"date","description":"{minLength: 2}"}`, "anthropic": `{"type":"string","format":"date","description":"{minLength: 2}"}`,
			"gemini": `{"type":"string","format":"date","description":"{minLength: 2}"}`, "plain": `{"type":"string","minLength":2,"description":"{format: \"date\"}"}`,
			"*": `{"type":"string","format":"date","description":"{minLength: 2}"}`,
		}},
		{`{"type": "string", "pattern": "^a.*$"}`, map[string]string{
			"openai": `{"type":"string","pattern":"^a.*$"}`, "anthropic": `{"type":"string","pattern":"^a.*$"}`, "*": `{"type":"string","description":"{pattern: \"^a.*$\"}"}`,
		}},
		{`{"type": "string", "pattern": "^\"[^x]+$"}`, map[string]string{
			"openai": `{"type":"string","pattern":"^\"[^x]+$"}`, "anthropic": `{"type":"string","pattern":"^\"[^x]+$"}`, "*": `{"type":"string","description":"{pattern: \"^\\\"[^x]+$\"}"}`,
		}},
		{`{"allOf": [{"type": "integer", "maximum": 9}], "description": "N"}`, map[string]string{
			"anthropic": `{"type":"integer","description":"N {maximum: 9}"}`, "*": `{"type":"integer","maximum":9,"description":"N"}`,
		}},
		{`{"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 9}]}`, map[string]string{
			"*": `{"type":"integer","description":"{allOf: [{\"minimum\":3},{\"maximum\":9}]}"}`,
		}},
		{`{"allOf": [{"type": "integer"}, {"minimum": 3}]}`, map[string]string{
			"openai":    `{"type":"string","description":"JSON text that fits {\"allOf\":[{\"type\":\"integer\"},{\"minimum\":3}]}"}`,
			"anthropic": `{"type":"string","description":"JSON text that fits {\"allOf\":[{\"type\":\"integer\"},{\"minimum\":3}]}"}`,
			"gemini":    `{"description":"{allOf: [{\"type\":\"integer\"},{\"minimum\":3}]}"}`,
			"plain":     `{"description":"{allOf: [{\"type\":\"integer\"},{\"minimum\":3}]}"}`,
			"*":         `{"type":["null","boolean","number","string","array","object"],"description":"{allOf: [{\"type\":\"integer\"},{\"minimum\":3}]}"}`,
		}},
		{`{"const": 5}`, map[string]string{
			"openai": `{"type":"number","const":5}`, "gemini": `{"type":"number","enum":[5]}`, "*": `{"const":5}`,
		}},
		{`{"enum": ["a", null]}`, map[string]string{
			"openai": `{"type":["string","null"],"enum":["a",null]}`, "gemini": `{"type":["string","null"],"enum":["a",null]}`, "*": `{"enum":["a",null]}`,
		}},
		{`{"enum": [{"a": 1}]}`, map[string]string{
			"openai":    `{"type":"string","description":"JSON text that fits {\"enum\":[{\"a\":1}]}"}`,
			"anthropic": `{"type":"string","description":"JSON text that fits {\"enum\":[{\"a\":1}]}"}`,
			"gemini":    `{"description":"{enum: [{\"a\":1}]}"}`,
			"*":         `{"enum":[{"a":1}]}`,
		}},
		{`{"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3, "uniqueItems": true}`, map[string]string{
			"anthropic": `{"type":"array","items":{"type":"integer"},"minItems":1,"description":"{maxItems: 3, uniqueItems: true}"}`,
			"*":         `{"type":"array","items":{"type":"integer"},"maxItems":3,"minItems":1,"description":"{uniqueItems: true}"}`,
		}},
		{`{"type": "object", "additionalProperties": {"type": "integer"}}`, map[string]string{
			"openai":    `{"type":"string","description":"JSON text that fits {\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}"}`,
			"anthropic": `{"type":"string","description":"JSON text that fits {\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}"}`,
			"*":         `{"type":"object","additionalProperties":{"type":"integer"}}`,
		}},
		{`{"description": "D"}`, map[string]string{
			"openai": `{"type":"string","description":"D JSON text"}`, "anthropic": `{"type":"string","description":"D JSON text"}`, "*": `{"description":"D"}`,
			"llama": `{"type":["null","boolean","number","string","array","object"],"description":"D"}`, "ollama": `{"type":["null","boolean","number","string","array","object"],"description":"D"}`,
		}},
		{`{"type": "array", "prefixItems": [{"type": "string"}], "items": false}`, map[string]string{
			"openai":    `{"type":"string","description":"JSON text that fits {\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}"}`,
			"anthropic": `{"type":"string","description":"JSON text that fits {\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}"}`,
			"*":         `{"type":"array","description":"{prefixItems: [{\"type\":\"string\"}], items: false}"}`,
		}},
		{`{"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1}`, map[string]string{
			"openai":    `{"type":"string","description":"JSON text that fits {\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"}],\"minItems\":1}"}`,
			"anthropic": `{"type":"string","description":"JSON text that fits {\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"}],\"minItems\":1}"}`,
			"llama":     `{"type":"array","items":{"type":["null","boolean","number","string","array","object"]},"minItems":1,"description":"{prefixItems: [{\"type\":\"string\"}]}"}`,
			"ollama":    `{"type":"array","items":{"type":["null","boolean","number","string","array","object"]},"minItems":1,"description":"{prefixItems: [{\"type\":\"string\"}]}"}`,
			"*":         `{"type":"array","minItems":1,"description":"{prefixItems: [{\"type\":\"string\"}]}"}`,
		}},
		{`{"type": "array", "maxItems": 2}`, map[string]string{
			"openai": `{"type":"array","items":{"type":"string","description":"JSON text"},"maxItems":2}`, "anthropic": `{"type":"array","items":{"type":"string","description":"JSON text"},"description":"{maxItems: 2}"}`,
			"llama": `{"type":"array","items":{"type":["null","boolean","number","string","array","object"]},"maxItems":2}`, "ollama": `{"type":"array","items":{"type":["null","boolean","number","string","array","object"]},"maxItems":2}`, "*": `{"type":"array","maxItems":2}`,
		}},
		{`{"oneOf": [{"type": "integer"}, {"type": "string"}]}`, map[string]string{"*": `{"anyOf":[{"type":"integer"},{"type":"string"}]}`}},
		{`{"type": "integer", "not": {"const": 3}}`, map[string]string{"*": `{"type":"integer","description":"{not: {\"const\":3}}"}`}},
		{`{"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"properties": {"b": true}}, {"required": ["a"]}]}`, map[string]string{
			"openai":    `{"type":"string","description":"JSON text that fits {\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"anyOf\":[{\"properties\":{\"b\":true}},{\"required\":[\"a\"]}]}"}`,
			"anthropic": `{"type":"string","description":"JSON text that fits {\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"anyOf\":[{\"properties\":{\"b\":true}},{\"required\":[\"a\"]}]}"}`,
			"*":         `{"type":"object","properties":{"a":{"type":"string"}},"description":"{anyOf: [{\"properties\":{\"b\":true}},{\"required\":[\"a\"]}]}"}`,
		}},
		{`{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "additionalProperties": false}`, map[string]string{
			"openai": `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a","b"],"additionalProperties":false,"description":"{anyOf: [{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}"}`,
			"*":      `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false,"description":"{anyOf: [{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}"}`,
		}},
		{`{"type": ["object", "null"], "properties": {"a": {"type": "string"}}, "required": ["a"]}`, map[string]string{
			"openai":    `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},{"type":"null"}]}`,
			"anthropic": `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},{"type":"null"}]}`,
			"*":         `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"null"}]}`,
		}},
		// Alternatives are told apart by a constant, or by a property that one of them alone has.
		{`{"anyOf": [{"type": "object", "properties": {"k": {"const": 1}, "v": {"type": "string"}}, "required": ["k", "v"]}, {"type": "object", "properties": {"k": {"const": 2}, "v": {}}, "required": ["k", "v"]}]}`, map[string]string{
			"openai":    `{"anyOf":[{"type":"object","properties":{"k":{"type":"number","const":1},"v":{"type":"string"}},"required":["k","v"],"additionalProperties":false},{"type":"object","properties":{"k":{"type":"number","const":2},"v":{"type":"string","description":"JSON text"}},"required":["k","v"],"additionalProperties":false}]}`,
			"anthropic": `{"anyOf":[{"type":"object","properties":{"k":{"const":1},"v":{"type":"string"}},"required":["k","v"],"additionalProperties":false},{"type":"object","properties":{"k":{"const":2},"v":{"type":"string","description":"JSON text"}},"required":["k","v"],"additionalProperties":false}]}`,
			"gemini":    `{"anyOf":[{"type":"object","properties":{"k":{"type":"number","enum":[1]},"v":{"type":"string"}},"required":["k","v"]},{"type":"object","properties":{"k":{"type":"number","enum":[2]},"v":{}},"required":["k","v"]}]}`,
			"plain":     `{"anyOf":[{"type":"object","properties":{"k":{"const":1},"v":{"type":"string"}},"required":["k","v"]},{"type":"object","properties":{"k":{"const":2},"v":{}},"required":["k","v"]}]}`,
			"*":         `{"anyOf":[{"type":"object","properties":{"k":{"const":1},"v":{"type":"string"}},"required":["k","v"]},{"type":"object","properties":{"k":{"const":2},"v":{"type":["null","boolean","number","string","array","object"]}},"required":["k","v"]}]}`,
		}},
		{`{"anyOf": [{"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"]}, {"type": "object", "properties": {"v": {"type": "integer"}}, "required": ["v"]}]}`, map[string]string{
			"openai":    `{"type":"string","description":"JSON text that fits {\"anyOf\":[{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"string\"}},\"required\":[\"v\"]},{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"}},\"required\":[\"v\"]}]}"}`,
			"anthropic": `{"type":"string","description":"JSON text that fits {\"anyOf\":[{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"string\"}},\"required\":[\"v\"]},{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"}},\"required\":[\"v\"]}]}"}`,
			"*":         `{"anyOf":[{"type":"object","properties":{"v":{"type":"string"}},"required":["v"]},{"type":"object","properties":{"v":{"type":"integer"}},"required":["v"]}]}`,
		}},
		{`{"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": true}]}`, map[string]string{
			"openai":    `{"type":"string","description":"JSON text that fits {\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"additionalProperties\":true}]}"}`,
			"anthropic": `{"type":"string","description":"JSON text that fits {\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"additionalProperties\":true}]}"}`,
			"*":         `{"anyOf":[{"type":"string"},{"type":"object","additionalProperties":true}]}`,
		}},
	} {
		for _, name := range fit.Dialects() {
			want, ok := test.want[name]
			if !ok {
				want = test.want["*"]
			}
			whole := decoded(t, `{"type": "object", "properties": {"p": `+test.schema+`}, "required": ["p"], "additionalProperties": false}`)
			fitted := mustFit(t, whole, name)
			if diff := cmp.Diff(want, text(t, fitted.Schema.(fit.Object).Get("properties").(fit.Object).Get("p"))); diff != "" {
				t.Errorf("%s in %s: %s", test.schema, name, diff)
			}
		}
	}
}

func TestFitted_Undo(t *testing.T) {
	for _, test := range []struct{ schema, dialect, given, want string }{
		{`{"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "string"}}}`, "openai", `{"a": null, "b": null}`, `{"a": null}`},
		{`{"type": "object", "additionalProperties": {"type": "integer"}}`, "openai", `{"value": "{\"x\": 1}"}`, `{"x": 1}`},
		{`{"type": "object", "properties": {"m": {"type": "object"}}}`, "openai", `{"m": {"x": 1}}`, `{"m": {"x": 1}}`},
		{`{"type": "object", "properties": {"any": {}}}`, "openai", `{"any": "plain words"}`, `{"any": "plain words"}`},
		{`{"type": "object", "properties": {"any": {}}}`, "openai", `{"any": "[1, \"x\"]"}`, `{"any": [1, "x"]}`},
		{`{"type": "integer"}`, "openai", `{"value": 5}`, `5`},
		{`{"type": "integer"}`, "llama", `5`, `5`},
		{`{"type": "integer"}`, "openai", `5`, `5`},
		{`{"anyOf": [{"type": "null"}, {"type": "string", "pattern": "^†"}, {}]}`, "openai", `{"value": "†input.a"}`, `"†input.a"`},
		{`{"anyOf": [{"type": "null"}, {"type": "string", "pattern": "^†"}, {}]}`, "openai", `{"value": "{\"a\": 1}"}`, `{"a": 1}`},
		{`{"anyOf": [{"type": "object", "properties": {"k": {"const": "a"}, "v": {"type": "string"}}, "required": ["k"]},
			{"type": "object", "properties": {"k": {"const": "b"}, "v": {"type": "object"}}, "required": ["k", "v"]}]}`, "openai", `{"value": {"k": "b", "v": "{}"}}`, `{"k": "b", "v": {}}`},
		{`{"anyOf": [{"type": "object", "properties": {"k": {"const": "a"}, "v": {"type": "string"}}, "required": ["k"]},
			{"type": "object", "properties": {"k": {"const": "b"}, "v": {"type": "object"}}, "required": ["k", "v"]}]}`, "openai", `{"value": {"k": "a", "v": null}}`, `{"k": "a"}`},
		{`{"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}, "required": ["n"]}`, "gemini", `{"n": 1, "next": {"n": 2, "next": {"n": 3, "next": {"n": 4}}}}`, `{"n": 1, "next": {"n": 2, "next": {"n": 3, "next": {"n": 4}}}}`},
		{`{"anyOf": [{"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}, "o": {"type": "string"}}, "required": ["n"]},
			{"type": "object", "properties": {"n": {"type": "integer"}, "o": {"type": ["string", "null"]}}, "required": ["n"]}]}`, "openai", `{"value": {"n": 9, "o": null}}`, `{"n": 9, "o": null}`},
		{`{"type": "object", "properties": {"a": {"oneOf": [{"type": "null"}, {"enum": [null, 1]}]}, "b": {"oneOf": [{"type": "null"}, {"type": "integer"}]}}}`, "openai", `{"a": null, "b": null}`, `{"b": null}`},
		{`{"type": "object", "properties": {"a": {"type": "string", "enum": ["x", null]}, "b": {"oneOf": [{"type": "null"}, {"type": "integer"}]}}}`, "openai", `{"a": null, "b": null}`, `{"b": null}`},
		{`{"anyOf": [{"type": "object", "properties": {"to": {"const": "†a"}, "value": {}}, "required": ["to", "value"]},
			{"type": "object", "properties": {"to": {"const": "†a"}, "message": {"type": "string"}}, "required": ["to", "message"]}]}`, "openai", `{"value": {"to": "†a", "message": "5"}}`, `{"to": "†a", "message": "5"}`},
		{`{"anyOf": [{"enum": ["auto", "5"]}, {}]}`, "openai", `{"value": "5"}`, `5`},
		{`{"anyOf": [{"enum": ["auto", "off"]}, {}]}`, "openai", `{"value": "auto"}`, `"auto"`},
		// A model that is not held to its schema leaves out properties.
		{`{"anyOf": [{"type": "object", "properties": {"k": {"const": "a"}, "v": {}, "w": {"type": "string"}}, "required": ["k", "v", "w"]}, {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}]}`, "openai", `{"value": {"k": "a", "v": "5"}}`, `{"k": "a", "v": 5}`},
		// What does not fit stays as it is.
		{`{"anyOf": [{"type": "integer"}, {"type": "string"}]}`, "openai", `{"value": [1]}`, `[1]`},
	} {
		fitted := mustFit(t, decoded(t, test.schema), test.dialect)
		got, err := fitted.Undo(decoded(t, test.given))
		if err != nil {
			t.Errorf("%s of %s: %v", test.given, test.schema, err)
		} else if diff := cmp.Diff(decoded(t, test.want), got); diff != "" {
			t.Errorf("%s of %s: %s", test.given, test.schema, diff)
		}
	}
}

func TestFitted_UndoErrors(t *testing.T) {
	fitted := mustFit(t, decoded(t, `{"type": "object", "properties": {"list": {"type": "array", "items": {"type": "object"}}}}`), "openai")
	_, err := fitted.Undo(decoded(t, `{"list": ["{}", "{"]}`))
	if err == nil || !strings.HasPrefix(err.Error(), "list[1]: the text is not JSON: ") {
		t.Errorf("got %v", err)
	}
}

func TestSchema_Broken(t *testing.T) {
	for _, schema := range []any{nil, 5, "x", []any{}, map[string]any{"properties": map[string]any{"a": 5}}} {
		if _, err := fit.Schema(schema, dialect(t, "plain")); err == nil {
			t.Errorf("%v was fitted", schema)
		}
	}
}

// TestSchema_HoldsItself fits schemas that refer to themselves in every way.
func TestSchema_HoldsItself(t *testing.T) {
	for _, schema := range []string{
		`{"$ref": "#"}`, `{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}`,
		`{"anyOf": [{"$ref": "#"}, {"type": "string"}]}`, `{"allOf": [{"$ref": "#"}, {"$ref": "#"}]}`,
		`{"type": "object", "properties": {"a": {"$ref": "#", "required": ["a"]}, "b": {"$ref": "#", "required": ["b"]}}}`,
		`{"type": "array", "items": {"allOf": [{"$ref": "#"}, {"minItems": 1}]}}`, `{"$ref": "#/nowhere"}`, `{"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}, {"type": "string"}]}}}`,
		`{"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/y"}, {"$ref": "#/$defs/x"}, {}]}, "y": {"oneOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}]}}}`, `{"$ref": "#anchor"}`,
	} {
		for _, name := range fit.Dialects() {
			fitted := mustFit(t, decoded(t, schema), name)
			for _, v := range []string{`{"a": {"b": null}}`, `[[], [[]]]`, `"x"`, `null`, `{"value": "[1]"}`} {
				_, _ = fitted.Undo(decoded(t, v))
			}
		}
	}
}

// TestSchema_TooLarge holds that schemas which are too large are fitted in bounded time, and are over a
// limit.
func TestSchema_TooLarge(t *testing.T) {
	many := func(n int, format string) string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = strings.NewReplacer("NEXT", fmt.Sprint(i+1), "THIS", fmt.Sprint(i)).Replace(format)
		}
		return strings.Join(texts, ",")
	}
	for name, schema := range map[string]string{
		"deep":     strings.Repeat(`{"type": "object", "properties": {"a": `, 80) + "{}" + strings.Repeat("}}", 80),
		"branches": `{"anyOf": [` + many(9000, `{"type": "object", "properties": {"k": {"const": "THIS"}, "v": {}}, "required": ["k"]}`) + `]}`,
		"chain": `{"$ref": "#/$defs/d0", "$defs": {` + many(2000, `"dTHIS": {"anyOf": [{"type": "object", "properties": {"k": {"const": "THIS"}}, "required": ["k"]}, {"$ref": "#/$defs/dNEXT"}, {"$ref": "#/$defs/dNEXT"}]}`) +
			`, "d2000": {"type": "string"}}}`,
		"wide": `{"type": "object", "properties": {"p0": true}, "required": [` + many(6000, `"pTHIS"`) + `]}`,
		"fan":  `{"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {` + many(40, `"dTHIS": {"type": "object", "properties": {"a": {"$ref": "#/$defs/dNEXT"}, "b": {"$ref": "#/$defs/dNEXT"}}}`) + `, "d40": {}}}`,
	} {
		for _, d := range fit.Dialects() {
			fitted := mustFit(t, decoded(t, schema), d)
			if fitted.Excess == "" {
				t.Errorf("%s: a schema of %d bytes is over no limit of %s", name, fitted.Size, d)
			}
			if _, err := fitted.Undo(decoded(t, `{"value": {"k": "7", "a": [1]}}`)); err != nil {
				t.Errorf("%s, %s: %v", name, d, err)
			}
		}
	}
}
