package host

import (
	"testing"

	"obelus/engine"
	"obelus/store"
)

// TestAlternativesOfASchema holds that what a value is told by, where Lua leaves it open,
// is the alternative of a schema that it may be, not the first one.
func TestAlternativesOfASchema(t *testing.T) {
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
		for _, name in ipairs { "one", "any", "all", "unsaid", "open", "when" } do
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
		{"open", `1`, `{"k":1,"l":{},"v":"12345678901234567890"}`},
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
