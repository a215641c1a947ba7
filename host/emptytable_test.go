package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/memory"
)

// TestEmptyTable_AgainstSchema holds that an empty Lua table is an array only where the schema
// names the type array, takes an empty array and takes no empty object, wherever a value from
// Lua meets a schema.
func TestEmptyTable_AgainstSchema(t *testing.T) {
	const refused = ""
	tests := []struct{ name, schema, value, want string }{
		// what an object must hold names no type
		{"required", `{"required": ["orders"]}`, `{}`, refused},
		{"required, within", `{"properties": {"x": {"required": ["orders"]}}}`, `{x = {}}`, refused},
		{"minProperties", `{"minProperties": 1}`, `{}`, refused},
		{"unevaluatedProperties", `{"properties": {"x": {"unevaluatedProperties": false, "minProperties": 1}}}`, `{x = {}}`, refused},
		{"not an object", `{"not": {"type": "object"}}`, `{}`, refused},
		{"not a list either", `{"properties": {"x": {"not": {"type": "array"}, "required": ["a"]}}}`, `{x = {}}`, refused},
		{"items names no type", `{"items": {"type": "string"}}`, `{}`, `{}`},
		{"items, and a key", `{"items": {"type": "string"}, "required": ["a"]}`, `{}`, refused},
		{"object", `{"type": "object", "required": ["a"]}`, `{}`, refused},
		{"array of one", `{"type": "array", "minItems": 1}`, `{}`, refused},
		{"array of one, or an object with a key", `{"anyOf": [{"type": "array", "minItems": 1}, {"required": ["a"]}]}`, `{}`, refused},
		{"contains asks for one", `{"type": "array", "contains": {"type": "array"}}`, `{ {}, json.array() }`, `[{},[]]`},

		// what names it
		{"type", `{"type": "array"}`, `{}`, `[]`},
		{"types", `{"type": ["null", "array"]}`, `{}`, `[]`},
		{"either type", `{"type": ["object", "array"]}`, `{}`, `{}`},
		{"either type, with a key", `{"type": ["object", "array"], "required": ["a"]}`, `{}`, `[]`},
		{"const", `{"const": []}`, `{}`, `[]`},
		{"const within", `{"const": {"x": []}}`, `{ x = {} }`, refused},
		{"enum", `{"enum": ["none", []]}`, `{}`, `[]`},
		{"enum of both", `{"enum": [{}, []]}`, `{}`, `{}`},
		{"enum of lists", `{"enum": ["none", [1]]}`, `{}`, refused},
		{"$ref", `{"$ref": "#/$defs/list"}`, `{}`, `[]`},
		{"$ref, and more beside it", `{"$ref": "#/$defs/list", "maxItems": 3}`, `{}`, `[]`},
		{"anyOf", `{"anyOf": [{"type": "string"}, {"type": "array"}]}`, `{}`, `[]`},
		{"anyOf of both", `{"anyOf": [{"type": "array"}, {"type": "object"}]}`, `{}`, `{}`},
		{"anyOf of a list and a string of items", `{"anyOf": [{"type": "string"}, {"minProperties": 1}]}`, `{}`, refused},
		{"oneOf", `{"oneOf": [{"type": "array"}, {"type": "object", "required": ["a"]}]}`, `{}`, `[]`},
		{"oneOf that takes it twice", `{"oneOf": [{"type": "array"}, {"required": ["a"]}]}`, `{}`, refused},
		{"allOf", `{"allOf": [{"description": "d"}, {"type": "array"}]}`, `{}`, `[]`},
		{"allOf of both", `{"allOf": [{"type": "object"}, {"type": "array"}]}`, `{}`, refused},
		{"if", `{"if": {"type": "array"}, "else": {"required": ["a"]}}`, `{}`, `[]`},
		{"then", `{"properties": {"x": {"if": {"maxLength": 9}, "then": {"type": "array"}}}}`, `{ x = {} }`, `{"x":[]}`},
		{"else", `{"properties": {"x": {"if": {"type": "string"}, "else": {"type": "array"}}}}`, `{ x = {} }`, `{"x":[]}`},
		{"not not", `{"not": {"not": {"type": "array"}}}`, `{}`, `[]`},

		// at every place
		{"properties", `{"properties": {"x": {"type": "array"}}}`, `{ x = {}, y = {} }`, `{"x":[],"y":{}}`},
		{"patternProperties", `{"patternProperties": {"^x": {"type": "array"}}}`, `{ x1 = {}, y = {} }`, `{"x1":[],"y":{}}`},
		{"additionalProperties", `{"properties": {"y": true}, "additionalProperties": {"type": "array"}}`, `{ x = {}, y = {} }`, `{"x":[],"y":{}}`},
		{"unevaluatedProperties", `{"anyOf": [{"properties": {"y": true}}], "unevaluatedProperties": {"type": "array"}}`, `{ x = {}, y = {} }`, `{"x":[],"y":{}}`},
		{"dependentSchemas", `{"dependentSchemas": {"k": {"properties": {"x": {"type": "array"}}}}}`, `{ k = 1, x = {} }`, `{"k":1,"x":[]}`},
		{"dependentSchemas that don't apply", `{"dependentSchemas": {"k": {"properties": {"x": {"type": "array"}}}}}`, `{ x = {} }`, `{"x":{}}`},
		{"items", `{"items": {"type": "array"}}`, `{ {}, { {} } }`, `[[],[{}]]`},
		{"prefixItems", `{"prefixItems": [{"type": "array"}]}`, `{ {}, {} }`, `[[],{}]`},
		{"unevaluatedItems", `{"prefixItems": [true], "unevaluatedItems": {"type": "array"}}`, `{ {}, {} }`, `[{},[]]`},
		{"deep", `{"$ref": "#/$defs/tree"}`, `{ next = { next = { list = {}, more = {} } } }`, `{"next":{"next":{"list":[],"more":{}}}}`},
		{"several alternatives at once", `{"allOf": [{"anyOf": [{"properties": {"x": {"type": "array"}}}, false]}, {"oneOf": [false, {"properties": {"y": {"type": "array"}}}]}]}`,
			`{ x = {}, y = {} }`, `{"x":[],"y":[]}`},
		{"an alternative by another key", `{"oneOf": [{"properties": {"k": {"const": 1}, "x": {"type": "array"}}}, {"properties": {"k": {"const": 2}, "x": {"type": "object"}}}]}`,
			`{ { k = 1, x = {} }, { k = 2, x = {} } }`, "apart"},
		{"not a name", `{"propertyNames": {"maxLength": 1}, "properties": {"x": {"type": "array"}}}`, `{ x = {}, y = {} }`, `{"x":[],"y":{}}`},
	}
	const defs = `"$defs": {"list": {"type": "array"}, "tree": {"properties": {"next": {"$ref": "#/$defs/tree"}, "list": {"type": "array"}}}}`
	uses := map[string]string{
		"result": `return { tools = { echo = { _output = S, ["$defs"] = D } }, calls = { { _tool = "echo", _outputPath = "†o.v" } }, output = "†o.v" }`,
		"parameter": `return { tools = { given = { properties = { v = S }, ["$defs"] = D } },
			calls = { { _tool = "given", v = V(), _outputPath = "†o.v" } }, output = "†o.v" }`,
		"output":              `S["$defs"] = D; return { schema = S, calls = {}, output = V() }`,
		"output of a planner": `S["$defs"] = D; return { schema = S, calls = function() return { output = V() } end }`,
		"kind, by a call": `return { context = { { type = "state", schema = { properties = { v = S }, ["$defs"] = D } } },
			calls = { { _tool = "echo", _outputPath = "†state.v" } }, output = "†state.v" }`,
		"kind, by a message": `return { context = { { type = "state", schema = { properties = { v = S }, ["$defs"] = D } }, { type = "state", v = V() } },
			calls = {}, output = "†state.v" }`,
		"message of a call": `return { tools = { message = { _output = S, ["$defs"] = D } },
			calls = { { _tool = "message", _outputPath = "†o.v" } }, output = "†o.v" }`,
	}
	for _, test := range tests {
		if test.want == "apart" { // a case of each element
			test.schema = `{"type": "array", "items": ` + test.schema + `}`
			test.want = `[{"k":1,"x":[]},{"k":2,"x":{}}]`
		}
		head := fmt.Sprintf("local S, D = json.decode [==[%s]==], json.decode([==[{%s}]==])['$defs']\nlocal function V() return %s end\n", test.schema, defs, test.value)
		files := map[string]string{"activities/a.lua": head + `
			Activity.register("echo", function() return V() end)
			Activity.register("given", function(call) return call.v end)
			Activity.register("message", function() return Message.data{ kind = "o", data = { v = V() } } end)`}
		for use, plan := range uses {
			files["plans/"+strings.ReplaceAll(use, " ", "_")+".lua"] = head + plan
		}
		g := open(t, files)
		for use := range uses {
			t.Run(test.name+"/"+use, func(t *testing.T) {
				got, err := outputOf(t, g, "plans/"+strings.ReplaceAll(use, " ", "_")+".lua")
				if err != nil && test.want != refused || err == nil && got != test.want {
					t.Errorf("got %s, %v, want %s", got, err, test.want)
				}
			})
		}
	}
}

// outputOf runs a plan of a project in a log of its own.
func outputOf(t *testing.T, g *Generation, plan string) (string, error) {
	t.Helper()
	request, registry, err := g.Plan(plan)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := (&engine.Runner{Log: memory.New(), Registry: registry, Ticks: 1}).Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil {
		return "", err
	}
	if outcome.Status != journal.RunDone {
		return "", fmt.Errorf("%s: %v %v", outcome.Status, outcome.Error, outcome.Calls)
	}
	return string(store.EncodeJSON(outcome.Output)), nil
}

// TestEmptyTable_ReaderWantsArray holds that the error of the one that reads an empty table as
// a list says what to do, and who made it.
func TestEmptyTable_ReaderWantsArray(t *testing.T) {
	const hint = "an empty Lua table is an object: "
	of := func(call, tool string) string {
		return hint + "it comes from call " + call + ` of tool "` + tool + `", whose activity can return json.array(), or whose tool can declare _output)`
	}
	const unknown = hint + "whoever makes the list can use json.array())"
	tests := []struct{ name, plan, want string }{
		{"the whole value", `{ { _tool = "filter", _outputPath = "†o" }, { _tool = "read", list = "†o.out" } }`, "list: got object, want array (" + of("1.1", "filter")},
		{"within a parameter", `{ { _tool = "filter", _outputPath = "†o" }, { _tool = "read", deep = { { list = "†o.out" } } } }`, "deep[0].list: got object, want array (" + of("1.1", "filter")},
		{"within a value", `{ { _tool = "filter", _outputPath = "†o" }, { _tool = "read", inner = "†o" } }`, "inner.out: got object, want array (" + of("1.1", "filter")},
		{"one of several values", `{ { _tool = "filter", _outputPath = "†o.a" }, { _tool = "filter", _outputPath = "†o.b" }, { _tool = "read", list = "†o.b.out" } }`,
			"list: got object, want array (" + of("1.2", "filter")},
		{"by an enum", `{ { _tool = "filter", _outputPath = "†o" }, { _tool = "read", some = "†o.out" } }`, `some: value must be one of [], "none" (` + of("1.1", "filter")},
		{"a value that is computed", `{ { _tool = "filter", _outputPath = "†o" }, { _tool = "read", list = "†(†o.yes ? †o.out : 1)" } }`, "list: got object, want array (" + of("1.1", "filter")},
		{"a message of the plan", `{ context = { { type = "state", out = {} } }, calls = { { _tool = "read", list = "†state.out" } } }`, "list: got object, want array (" + unknown},
		{"the output", `{ calls = { { _tool = "filter", _outputPath = "†o" } }, output = { list = "†o.out" }, schema = { properties = { list = { type = "array" } } } }`,
			"output.list: got object, want array (" + of("1.1", "filter")},
		{"a call of an earlier tick", `{ calls = function(context)
			if not context.o then return { calls = { { _tool = "filter", _outputPath = "†o" } } } end
			return { calls = { { _tool = "read", list = "†o.out" } }, output = 1 } end }`, "list: got object, want array (" + of("1.1", "filter")},
		{"no empty table", `{ { _tool = "full", _outputPath = "†o" }, { _tool = "read", list = "†o.out" } }`, "list: got object, want array"},
		{"no array wanted", `{ { _tool = "filter", _outputPath = "†o" }, { _tool = "read", text = "†o.out" } }`, "text: got object, want string"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := open(t, map[string]string{
				"activities/a.lua": `
					local list = { type = "array" }
					Tool.register("read", { properties = { list = list, text = { type = "string" }, some = { enum = { json.array(), "none" } },
						inner = { properties = { out = list } }, deep = { items = { properties = { list = list } } } } })
					Activity.register("read", function() end)
					Activity.register("filter", function() return { out = {}, yes = true } end)
					Activity.register("full", function() return { out = { a = 1 } } end)`,
				"plans/p.lua": "return " + test.plan,
			})
			request, registry, err := g.Plan("plans/p.lua")
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := (&engine.Runner{Log: memory.New(), Registry: registry, Ticks: 2}).Run(t.Context(), engine.Start{Context: "c", Request: request})
			if err != nil {
				t.Fatal(err)
			}
			got := []string{outcome.Error}
			for _, call := range outcome.Calls {
				if text, ok := call.Error["message"].(string); ok {
					got = append(got, text)
				}
			}
			if !slices.ContainsFunc(got, func(text string) bool { return strings.HasSuffix(text, test.want) }) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestEmptyTable_ByWhatIsAroundIt holds that alternatives of what is declared for a kind count
// for what is written below it, by what the kind already holds.
func TestEmptyTable_ByWhatIsAroundIt(t *testing.T) {
	const union = `oneOf = { { properties = { k = { const = 1 }, list = { type = "array" } } }, { properties = { k = { const = 2 }, list = { type = "object" } } } }`
	const nested = `anyOf = { { properties = { list = { type = "array", items = { type = "array" } } } } }`
	for _, test := range []struct{ name, schema, data, call, want string }{
		{"anyOf", `anyOf = { { type = "null" }, { type = "object", properties = { list = { type = "array" } } } }`, `a = 1`, ``, `{"a":1,"list":[]}`},
		{"oneOf", union, `k = 1`, ``, `{"k":1,"list":[]}`},
		{"oneOf, the other", union, `k = 2`, ``, `{"k":2,"list":{}}`},
		{"if", `["if"] = { required = { "k" } }, ["then"] = { properties = { list = { type = "array" } } }`, `k = 1`, ``, `{"k":1,"list":[]}`},
		{"dependentSchemas", `dependentSchemas = { k = { properties = { list = { type = "array" } } } }`, `k = 1`, ``, `{"k":1,"list":[]}`},
		{"dependentSchemas, without the key", `dependentSchemas = { k = { properties = { list = { type = "array" } } } }`, `j = 1`, ``, `{"j":1,"list":{}}`},
		{"unevaluatedProperties", `unevaluatedProperties = { type = { "array", "number" } }`, `k = 1`, ``, `{"k":1,"list":[]}`},
		{"push", nested, `list = { { 1 } }`, `, _outputMethod = "push"`, `{"list":[[1],[]]}`},
		{"concat", nested, `list = { { 1 } }`, `, _tool = "several", _outputMethod = "concat"`, `{"list":[[1],[],[2]]}`},
		{"merge", union, `k = 1, list = { 1 }`, `, _tool = "object", _outputMethod = "merge", _outputPath = "†state"`, `{"deep":{},"k":1,"list":[]}`},
		{"assign", union, `k = 2, list = { a = 1 }`, `, _tool = "object", _outputMethod = "assign", _outputPath = "†state"`, `{"deep":{},"k":2,"list":{}}`},
		{"an element", nested, `list = { { 1 }, { 2 } }`, `, _outputPath = "†state.list.1"`, `{"list":[[1],[]]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := open(t, map[string]string{
				"activities/a.lua": `Activity.register("empty", function() return {} end)
					Activity.register("several", function() return { {}, { 2 } } end)
					Activity.register("object", function() return { list = {}, deep = {} } end)`,
				"plans/p.lua": `local call = { _tool = "empty", _outputPath = "†state.list" }
					for key, v in pairs { ` + strings.TrimPrefix(test.call, ",") + ` } do call[key] = v end
					return { context = { { type = "state", schema = { ` + test.schema + ` } }, { type = "state", ` + test.data + ` } }, calls = { call }, output = "†state" }`,
			})
			if got, err := outputOf(t, g, "plans/p.lua"); err != nil || got != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}
