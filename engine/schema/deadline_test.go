package schema_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"obelus/engine/schema"
	"obelus/store"
)

// within is a value within others, n deep.
func within(open, value, end string, n int) string {
	return strings.Repeat(open, n) + value + strings.Repeat(end, n)
}

// array is one of n elements.
func array(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// forests are all that n arrays can be within and beside each other: the same brackets,
// in other orders.
func forests(n int) (all []string) {
	if n == 0 {
		return []string{""}
	}
	for k := range n {
		for _, first := range forests(k) {
			for _, others := range forests(n - 1 - k) {
				all = append(all, strings.TrimSuffix("["+first+"],"+others, ","))
			}
		}
	}
	return all
}

// TestSchema_TooSlow holds that a check ends after a time, whatever its schema and value.
func TestSchema_TooSlow(t *testing.T) {
	defer schema.BoundCheckTime(100 * time.Millisecond)()
	const tooLong = "takes more than"
	twice := within(`{"a":`, "1", "}", 200)
	for name, c := range map[string]struct{ schema, value, wrong string }{
		"within itself, twice":  {`{"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`, twice, tooLong},
		"by dynamic references": {`{"$dynamicAnchor": "n", "properties": {"a": {"allOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]}}}`, twice, tooLong},
		"by recursive references": {`{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true,
			"properties": {"a": {"allOf": [{"$recursiveRef": "#"}, {"$recursiveRef": "#"}]}}}`, twice, tooLong},
		"in the words of older drafts": {`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"allOf": [{"$ref": "#"}, {"$ref": "#"}]}]}`,
			within("[", "1", "]", 200), tooLong},
		"by what depends on a key":  {`{"dependentSchemas": {"a": {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}}}`, twice, tooLong},
		"a condition within itself": {`{"properties": {"a": {"if": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}}`, twice, tooLong},
		"by an anchor that nothing refers to": {`{"$defs": {"big": {"$dynamicAnchor": "n", "properties": {"a": {"allOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]}}},
			"sub": {"$id": "sub", "$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}}}, "$ref": "sub"}`, twice, tooLong},
		"large patterns": {`{"pattern": "` + strings.Repeat("[ab]{1000}", 400) + `"}`, `"a"`, "it takes too much"},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := schema.New(decoded(t, c.schema))
			if err == nil {
				err = schema.Validate(decoded(t, c.value), "x")
			}
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}

// TestLists_TimeIsBounded holds that a value stays what it is where it takes too long to tell
// what an empty object in it is to be, and that the check of it says so.
func TestLists_TimeIsBounded(t *testing.T) {
	defer schema.BoundCheckTime(100 * time.Millisecond)()
	for name, c := range map[string]struct{ schema, value string }{
		"within itself, twice": {`{"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, "l": {"type": "array"}}}`, within(`{"l": {}, "a":`, "1", "}", 100)},
		"many alternatives": {`{"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["x"]}, {"properties": {"a": {"$ref": "#"}}, "required": ["y"]}, {"type": "array"}]}`,
			within(`{"a":`, "{}", "}", 100)},
		"a pattern": {`{"additionalProperties": {"type": "array"}, "propertyNames": {"not": {"pattern": "^(?=a)(a|aa)+$"}}}`,
			`{"` + strings.Repeat("a", 80) + `!": {}}`},
	} {
		schema, err := schema.New(decoded(t, c.schema))
		if err != nil {
			t.Fatal(err)
		}
		value := decoded(t, c.value)
		listed := schema.Lists(value)
		if got := string(store.EncodeJSON(listed)); got != string(store.EncodeJSON(value)) {
			t.Errorf("%s: %.100s", name, got)
		}
		if err := schema.Validate(listed, "x"); err == nil || !strings.Contains(err.Error(), "takes more than 100ms") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// TestSchema_SlowButInTime holds that large and deep values pass whose check takes little time.
func TestSchema_SlowButInTime(t *testing.T) {
	tree := `{"anyOf": [{"type": "number"}, {"type": "array", "items": {"$ref": "#"}}, {"type": "object", "additionalProperties": {"$ref": "#"}}]}`
	list := `{"if": {"required": ["last"]}, "then": {"properties": {"next": {"$ref": "#"}}}, "else": {"properties": {"next": {"$ref": "#"}}}}`
	row := `{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "maximum": 9}, "b": {"type": "string", "pattern": "^[a-z]+$"}, "c": {"enum": ["x", "y"]}}}`
	union := `{"oneOf": [{"type": "null"}`
	for _, kind := range []string{"a", "b", "c"} {
		union += `, {"type": "object", "properties": {"kind": {"const": "` + kind + `"}, "next": {"$ref": "#"}}}`
	}
	union += "]}"
	numbers := "0"
	for i := range 20_000 {
		numbers += fmt.Sprintf(",%d", i+1)
	}
	for name, c := range map[string]struct{ schema, value, wrong string }{
		"a tree":        {tree, within(`{"a": [`, "1", "]}", 120), ""},
		"a list":        {list, within(`{"next": `, "1", "}", 250), ""},
		"conditions":    {`{"properties": {"next": {"if": {"$ref": "#"}, "then": {"required": ["next"]}}}}`, within(`{"next": `, "{}", "}", 200), ""},
		"a table":       {`{"items": ` + row + `}`, array(20_000, `{"a": 1, "b": "hello", "c": "y"}`), ""},
		"a set":         {`{"uniqueItems": true}`, "[" + numbers + "]", ""},
		"no set":        {`{"uniqueItems": true}`, "[" + numbers + ", 1e2]", "items at 100 and 20,001 are equal"},
		"lists alike":   {`{"uniqueItems": true}`, "[[" + strings.Join(forests(9), "],[") + "]]", ""},
		"many values":   {`{"items": {"enum": ` + array(3_000, "[1, [1, 2, 3]]") + `}}`, array(3_000, "[1, [1, 2, 4]]"), "value must be one of"},
		"long numbers":  {`{"items": {"multipleOf": 1e-999}}`, array(20_000, "1.5"), ""},
		"identifiers":   {`{"items": {"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}}`, array(20_000, `"c0a8012e-7c1f-4b5e-9d0a-0123456789ab"`), ""},
		"a union":       {union, within(`{"kind": "c", "next": `, "null", "}", 7), ""},
		"a long choice": {`{"items": {"enum": [` + numbers + `]}}`, array(20_000, "20000.0"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := schema.New(decoded(t, c.schema))
			if err == nil {
				err = schema.Validate(decoded(t, c.value), "x")
			}
			if err == nil && c.wrong != "" || err != nil && (c.wrong == "" || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}

// TestSchema_UsedByMany holds that goroutines may check values against one schema at the same time.
func TestSchema_UsedByMany(t *testing.T) {
	schema, err := schema.New(decoded(t, `{"$schema": "http://json-schema.org/draft-07/schema#",
		"properties": {"a": {"format": "regex", "pattern": "^[^x]*$"}, "b": {"enum": [1, 2]}, "l": {"items": {"uniqueItems": true}, "type": "array"},
			"p": {"pattern": "^(?=a).*$"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	fits, misfits := decoded(t, `{"a": "^a+$", "b": 1.0, "l": {}, "p": "ab"}`), []any{decoded(t, `{"p": "b"}`), decoded(t, `{"a": "["}`), decoded(t, `{"a": "x"}`), decoded(t, `{"b": 3}`), decoded(t, `{"l": [[1, 1.0]]}`)}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if err := schema.Validate(schema.Lists(fits), ""); err != nil {
					t.Error(err)
				}
				for _, v := range misfits {
					if err := schema.Validate(v, ""); err == nil {
						t.Errorf("%s fits", store.EncodeJSON(v))
					}
				}
			}
		})
	}
	all.Wait()
}

// TestSchema_InUse holds that a slow check does not delay other checks against the same schema.
func TestSchema_InUse(t *testing.T) {
	defer schema.BoundCheckTime(time.Second)()
	schema, err := schema.New(decoded(t, `{"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "patternProperties": {"^x": {"type": "array"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	slow, quick := decoded(t, within(`{"a":`, "1", "}", 200)), decoded(t, `{"a": {}, "x": {}}`)
	ended := make(chan error, 8)
	for range cap(ended) {
		go func() { ended <- schema.Validate(slow, "x") }()
	}
	began := 0
	for range 100 {
		if lists, ok := schema.Lists(quick).(map[string]any)["x"].([]any); !ok {
			t.Errorf("%v", lists)
		}
		if err := schema.Validate(decoded(t, `{"x": []}`), "x"); err != nil {
			t.Error(err)
		}
		if len(ended) == 0 {
			began++
		}
	}
	if began == 0 {
		t.Error("the quick ones waited for the slow ones")
	}
	for range cap(ended) {
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "takes more than") {
			t.Error(err)
		}
	}
}
