package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/host/internal/luac"
)

func TestTypes_OfTools(t *testing.T) {
	g := open(t, map[string]string{"activities/a.lua": `
Tool.register("pay.now", {
  description = "Pays\na bill.",
  properties = {
    amount = { type = "number", description = "in  cents" },
    currency = { enum = { "EUR", "USD" } },
    lines = { items = { properties = { title = { type = "string" }, ["in-stock"] = { type = "boolean" } }, required = { "title" } } },
    payer = { ["$ref"] = "#/$defs/person" },
    extra = { additionalProperties = { type = "integer" }, type = "object" },
    mixed = { type = { "string", "null" } },
    many = { type = "array", items = { anyOf = { { type = "string" }, { type = "integer" } } } },
    level = { const = 3 },
    anything = {},
    _scopes = { const = { "state" } },
    _output = { type = "object", properties = { id = { type = "string" } }, required = { "id" }, additionalProperties = true },
  },
  ["$defs"] = { person = { type = "object", properties = { name = { type = "string" }, friend = { ["$ref"] = "#/$defs/person" } } } },
  required = { "amount", "payer" },
})
Tool.register("hello", { properties = { _output = { type = "string", description = "a greeting" } } })
Activity.register("plain", function() end)
Activity.register("pay.now", function() end)
Activity.register("hello", function() end)
`})
	want := `---@meta _

-- Written by obelus types, which writes it again: changes are lost.

---@class tool.hello: obelus.Call

---a greeting
---@alias tool.hello.result string

---@class tool.pay.now.lines.item
---@field ["in-stock"] boolean|nil
---@field title string

---@class tool.pay.now.person
---@field friend? tool.pay.now.person
---@field name? string

---Pays a bill.
---@class tool.pay.now: obelus.Call
---@field amount number in cents
---@field anything? any
---@field currency? "EUR"|"USD"
---@field extra? table<string, integer>
---@field level? 3
---@field lines? tool.pay.now.lines.item[]
---@field many? (string|integer)[]
---@field mixed? string|nil
---@field payer tool.pay.now.person

---@class tool.pay.now.result
---@field id string
---@field [string] any

---@class tool.plain: obelus.Call

---@class obelus.Activity
---@field register fun(name: "hello", fn: fun(call: tool.hello, context: obelus.Context, tool: table, key: string): tool.hello.result|nil, any)
---@field register fun(name: "hello", options: obelus.ActivityOptions, fn: fun(call: tool.hello, context: obelus.Context, tool: table, key: string): tool.hello.result|nil, any)
---@field register fun(name: "pay.now", fn: fun(call: tool.pay.now, context: obelus.Context, tool: table, key: string): tool.pay.now.result|nil, any)
---@field register fun(name: "pay.now", options: obelus.ActivityOptions, fn: fun(call: tool.pay.now, context: obelus.Context, tool: table, key: string): tool.pay.now.result|nil, any)
---@field register fun(name: "plain", fn: fun(call: tool.plain, context: obelus.Context, tool: table, key: string): any, any)
---@field register fun(name: "plain", options: obelus.ActivityOptions, fn: fun(call: tool.plain, context: obelus.Context, tool: table, key: string): any, any)

---@class obelus.test
---@field activity fun(name: "hello", call?: tool.hello, context?: obelus.Context): tool.hello.result|nil, any, string?
---@field activity fun(name: "pay.now", call?: tool.pay.now, context?: obelus.Context): tool.pay.now.result|nil, any, string?
---@field activity fun(name: "plain", call?: tool.plain, context?: obelus.Context): any, any, string?
`
	if diff := cmp.Diff(want, string(g.Types())); diff != "" {
		t.Error(diff)
	}
	if _, err := luac.ParseChunk("project.lua", g.Types()); err != nil {
		t.Error(err)
	}
}

func TestTypes_RecursiveSchemas(t *testing.T) {
	g := open(t, map[string]string{"activities/a.lua": `
Tool.register("a", {
  properties = { tree = { ["$ref"] = "#/$defs/tree" }, self = { ["$ref"] = "#" } },
  ["$defs"] = { tree = { anyOf = { { type = "array", items = { ["$ref"] = "#/$defs/tree" } }, { allOf = { { ["$ref"] = "#/$defs/tree" } } } } } },
})`})
	if text := string(g.Types()); len(text) > 100_000 || !strings.Contains(text, "---@class tool.a") {
		t.Error(len(text))
	}
}
