package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
)

// BenchmarkPrice is what it costs to run Lua here, beside the interpreter as it
// comes, which bounds nothing and lets everything survive: "stock" has the
// function ready in a state and copies its arguments, "new state" makes the
// state for each call.
//
//	go test -run '^$' -bench Price -count 5 ./host
func BenchmarkPrice(b *testing.B) {
	b.Run("call", func(b *testing.B) {
		price(b, `return { orders = 5, customer = call.customerId, region = context.state.region }`, plan.Invocation{
			Call:    object(b, `{"_tool":"a","customerId":"c-17","_outputPath":"†state.x"}`),
			Context: object(b, `{"state":{"region":"EU","user":{"name":"Ada"}}}`),
			Tool:    mustJSON(b, `{"properties":{"customerId":{"type":"string"}}}`),
		}, "stock", "new state", "isolated", "reuse", "worker")
	})
	for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
		list, _ := sized(size)
		b.Run(fmt.Sprintf("one field of %d KB", size>>10), func(b *testing.B) {
			price(b, `return context.state.orders[7].total`, plan.Invocation{
				Call: object(b, `{"_tool":"a"}`), Context: map[string]any{"state": map[string]any{"orders": list}},
			}, "stock", "isolated", "reuse", "worker")
		})
	}
	for _, work := range []struct{ name, body string }{
		{"fib(30)", `local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(30)`},
		{"gsub", `
			local text, n = ("the quick brown fox, 42 times; "):rep(100), 0
			for _ = 1, 20 do
				local s, k = text:gsub("%a+", function(word) return word:upper() end)
				n = n + k + #s:gsub("%s+", " "):gsub("(%d+) (%a+)", "%2 %1")
			end
			return n`},
		{"concat", `
			local parts, line = {}, ""
			for i = 1, 2000 do
				parts[#parts + 1] = "order-" .. i .. " for " .. i * 2 .. " EUR"
				line = line .. "x"
			end
			return #table.concat(parts, "\n") + #line`},
	} {
		b.Run(work.name, func(b *testing.B) { price(b, work.body, plan.Invocation{}, "stock", "isolated", "worker") })
	}
}

// price times one activity in several ways.
func price(b *testing.B, body string, in plan.Invocation, ways ...string) {
	for _, way := range ways {
		b.Run(way, func(b *testing.B) {
			run := here(b, body, way)
			if way == "stock" || way == "new state" {
				run = stock(b, body, way == "new state")
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := run(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func here(b *testing.B, body, way string) func(plan.Invocation) error {
	options := map[string]string{"reuse": "{ reuse = true }, "}[way]
	files := map[string]string{"activities/a.lua": `
		Tool.register("a", { properties = { customerId = { type = "string" } } })
		Activity.register("a", ` + options + `function(call, context) ` + body + ` end)`}
	if way == "worker" {
		files["obelus.lua"] = `return { isolate = "process" }`
	}
	g := open(b, files)
	if way == "worker" {
		b.Cleanup(g.workers.Close)
	}
	a := g.Registry().Activities["a"].Activity
	return func(in plan.Invocation) error {
		_, err := a.Run(context.Background(), in)
		return err
	}
}

func stock(b *testing.B, body string, fresh bool) func(plan.Invocation) error {
	made := func() (*lua.LState, *lua.LFunction) {
		L := lua.NewState()
		if err := L.DoString(`return function(call, context) ` + strings.TrimSpace(body) + ` end`); err != nil {
			b.Fatal(err)
		}
		return L, L.ToFunction(-1)
	}
	L, fn := made()
	return func(in plan.Invocation) error {
		if fresh {
			L.Close()
			L, fn = made()
		}
		L.SetTop(0)
		return L.CallByParam(lua.P{Fn: fn, NRet: 1, Protect: true}, stockValue(L, in.Call), stockValue(L, in.Context), stockValue(L, in.Tool))
	}
}

// stockValue copies a value as programs that embed the interpreter do.
func stockValue(L *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case json.Number:
		n, _ := v.Float64()
		return lua.LNumber(n)
	case map[string]any:
		t := L.CreateTable(0, len(v))
		for key, e := range v {
			t.RawSetString(key, stockValue(L, e))
		}
		return t
	case []any:
		t := L.CreateTable(len(v), 0)
		for _, e := range v {
			t.Append(stockValue(L, e))
		}
		return t
	}
	return lua.LNil
}
