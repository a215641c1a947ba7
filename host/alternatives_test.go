package host

import (
	"testing"

	"obelus/engine"
	"obelus/store"
	"obelus/store/memory"
)

// TestSchema_Alternatives holds that what a value is told by, where Lua leaves it open,
// is the alternative of a schema that it may be, not the first one.
func TestSchema_Alternatives(t *testing.T) {
	g := open(t, map[string]string{"activities/a.lua": `
		local function either(word) return { [word] = {
			{ properties = { k = { const = "a" }, l = { type = "array" }, v = { type = "integer" } }, required = { "k" } },
			{ properties = { k = { enum = { "b", "c" } }, l = { type = "object" }, v = { type = "string" } }, required = { "k" } } } }
		end
		Tool.register("one", { _output = either("oneOf") })
		Tool.register("any", { _output = either("anyOf") })
		Tool.register("all", { _output = { allOf = { { properties = { v = { type = "integer" } } }, { properties = { l = { type = "array" } } } } } })
		Tool.register("unsaid", { _output = { anyOf = {
			{ properties = { k = { const = 1 }, v = { type = "integer" } } }, { properties = { k = { const = true } } } } } })
		Tool.register("open", { _output = { anyOf = { { properties = { v = { type = "integer" } } }, { properties = { v = { type = "string" } } } } } })
		Tool.register("when", { ["_output"] = { ["if"] = { properties = { k = { const = "a" } } },
			["then"] = { properties = { l = { type = "array" } } }, ["else"] = { properties = { l = { type = "object" } } } } })
		Tool.register("referred", { ["$defs"] = { A = { properties = { l = { type = "array" } } }, B = { properties = { l = { type = "object" } } } },
			_output = { oneOf = { { ["$ref"] = "#/$defs/A", properties = { k = { const = "a" } } }, { ["$ref"] = "#/$defs/B", properties = { k = { const = "b" } } } } } })
		Tool.register("pattern", { _output = { oneOf = {
			{ properties = { k = { pattern = "^a" }, l = { type = "array" }, v = { type = "integer" } } }, { properties = { k = { pattern = "^b" }, l = { type = "object" }, v = { type = "string" } } } } } })
		Tool.register("typed", { _output = { oneOf = {
			{ properties = { k = { type = "string" }, l = { type = "array" } } }, { properties = { k = { type = "boolean" }, l = { type = "object" } } } } } })
		Tool.register("lacking", { _output = { oneOf = {
			{ required = { "z" }, properties = { l = { type = "object" } } }, { required = { "k" }, properties = { l = { type = "array" } } } } } })
		for _, name in ipairs { "one", "any", "all", "unsaid", "open", "when", "referred", "typed", "lacking", "pattern" } do
			Activity.register(name, function(call) return { k = call.k, l = {}, v = "12345678901234567890" } end)
		end`})
	for _, test := range []struct{ tool, k, want string }{
		{"one", `"a"`, `{"k":"a","l":[],"v":12345678901234567890}`},
		{"one", `"b"`, `{"k":"b","l":{},"v":"12345678901234567890"}`},
		{"any", `"a"`, `{"k":"a","l":[],"v":12345678901234567890}`},
		{"any", `"c"`, `{"k":"c","l":{},"v":"12345678901234567890"}`},
		{"all", `1`, `{"k":1,"l":[],"v":12345678901234567890}`},
		{"unsaid", `1`, `{"k":1,"l":{},"v":12345678901234567890}`},
		{"unsaid", `true`, `{"k":true,"l":{},"v":"12345678901234567890"}`},
		{"open", `1`, `{"k":1,"l":{},"v":12345678901234567890}`},
		{"pattern", `"a"`, `{"k":"a","l":[],"v":12345678901234567890}`},
		{"referred", `"a"`, `{"k":"a","l":[],"v":"12345678901234567890"}`},
		{"referred", `"b"`, `{"k":"b","l":{},"v":"12345678901234567890"}`},
		{"typed", `"a"`, `{"k":"a","l":[],"v":"12345678901234567890"}`},
		{"typed", `true`, `{"k":true,"l":{},"v":"12345678901234567890"}`},
		{"lacking", `1`, `{"k":1,"l":[],"v":"12345678901234567890"}`},
		{"when", `"a"`, `{"k":"a","l":[],"v":"12345678901234567890"}`},
		{"when", `"b"`, `{"k":"b","l":{},"v":"12345678901234567890"}`},
	} {
		k, err := store.DecodeJSON([]byte(test.k))
		if err != nil {
			t.Fatal(err)
		}
		result, err := engine.Try(t.Context(), g.Registry(), map[string]any{"_tool": test.tool, "k": k, "_outputPath": "†r"}, nil)
		if got := string(store.EncodeJSON(result.Value)); err != nil || got != test.want {
			t.Errorf("%s with %s gives %s, %v, not %s", test.tool, test.k, got, err, test.want)
		}
	}
}

// TestEmptyTable_DeclaredType holds that an empty table is a list wherever only one
// alternative of what is said of its place lets it be.
func TestEmptyTable_DeclaredType(t *testing.T) {
	g := open(t, map[string]string{
		"activities/a.lua": `
			Tool.register("think", { _output = { type = "array" } })
			Tool.register("inside", { _output = { properties = { items = { type = "array" } } } })
			Tool.register("root", { ["$ref"] = "#/$defs/a", ["$defs"] = { a = { properties = { list = { type = "array" } } } } })
			Delegate.register("d", { calls = {}, output = { items = {} } })
			Activity.register("cart", function() return { items = {} } end)
			Activity.register("root", function(call) return call.list end)
			Activity.register("mine", function(call) return call.list end)`,
		"plans/p.lua": `
			local cart = { anyOf = { { type = "null" }, { type = "object", properties = { items = { type = "array" } } } } }
			return {
				context = { { type = "state", schema = { properties = { cart = cart, first = cart } } }, { type = "state", first = { items = {} } },
					{ type = "tool", tool = { mine = { properties = { list = { type = "array" } } } } } },
				calls = {
					{ _tool = "cart", _outputPath = "†state.cart" },
					{ _tool = "think", _output = {}, _outputPath = "†r.thought" },
					{ _tool = "inside", _delegate = "d", _outputPath = "†r.inside" },
					{ _tool = "root", list = {}, _outputPath = "†r.root" },
					{ _tool = "mine", list = {}, _outputPath = "†r.mine" },
				},
				output = { "†state", "†r", {} }, schema = { prefixItems = { {}, {}, { anyOf = { { type = "array" }, { type = "null" } } } } },
			}`,
	})
	request, registry, err := g.Plan("plans/p.lua")
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := (&engine.Runner{Log: memory.New(), Registry: registry}).Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"cart":{"items":[]},"first":{"items":[]}},{"inside":{"items":[]},"mine":[],"root":[],"thought":[]},[]]`
	if got := string(store.EncodeJSON(outcome.Output)); got != want {
		t.Errorf("it gives %s, not %s (%v)", got, want, outcome.Calls)
	}
}
