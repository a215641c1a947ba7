package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// chain is a project whose plan has calls that depend on each other, and one that does not.
var chain = map[string]string{
	"obelus.lua": "return { drain = '100ms' }",
	"activities/work.lua": `
		Tool.register("add", { description = "Adds.", properties = { a = { type = "number" }, b = { type = "number" }, _output = { type = "number" } }, required = { "a" } })
		Activity.register("add", { timeout = "3s", retries = 1 }, function(call) return call.a + (call.b or 1) end)
		Activity.register("fail", function() return nil, { message = "no luck", code = "luck" } end)
		Activity.register("see", function(call, context) return call.v or context.state end)
		Tool.register("think", { description = "A model's." })`,
	"plans/chain.lua": `return {
		context = { { type = "input", schema = { type = "object", properties = { n = { type = "number" } }, required = { "n" } } } },
		calls = {
			{ _tool = "add", a = "†input.n", _outputPath = "†state.one" },
			{ _tool = "add", a = "†state.one", _outputPath = "†state.two" },
			{ _tool = "add", a = "†input.n", b = 10, _outputPath = "†state.other" },
			{ _tool = "add", a = "†state.other || †state.two", _outputPath = "†state.either" },
		},
		output = "†state.two", schema = { type = "number" } }`,
	"plans/conditions.lua": `return {
		{ _tool = "add", a = "†input.n", _outputPath = "†state.one" },
		{ _tool = "add", a = "†input.n", _if = "†state.one > 100", _outputPath = "†state.large" },
		{ _tool = "add", a = "†input.n", _if = "†state.one < 100", _outputPath = "†state.small" },
		{ _tool = "add", a = 1, _after = "†state.one", _outputPath = "†state.later" },
	}`,
	"plans/rounds.lua": `return function(context)
		if not context.state then return { calls = { { _tool = "add", a = 1, _outputPath = "†state.x" } } } end
		return { calls = {}, output = "†state.x" }
	end`,
	"plans/sub/echo.json": `{"calls":[],"output":"†input"}`,
	"plans/bad.lua":       `return { { _tool = "ad", a = 1 } }`,
	"plans/broken.lua":    "\nreturn {",
	"plans/notes.txt":     "no plan",
}

// answer makes a request that is answered with 200, and decodes the answer.
func (s *site) answer(path string, into any) {
	s.t.Helper()
	status, text := s.ask("GET", path, "")
	if err := json.Unmarshal([]byte(text), into); err != nil || status != http.StatusOK {
		s.t.Fatalf("GET %s: %d %s (%v)", path, status, text, err)
	}
}

// runChain runs the plan of chain in a context a.
func (s *site) runChain() {
	s.t.Helper()
	s.expect("POST", "/v1/runs", `{"plan":"plans/chain.lua","input":{"n":5},"context":"a","wait":true}`, 200, `{"context":"a","error":null,"output":7,"status":"done"}`)
}

func TestGraph(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.runChain()
	var g graphAnswer
	s.answer("/v1/contexts/a/graph", &g)
	if len(g.Ticks) != 1 || len(g.Ticks[0].Nodes) != 4 {
		t.Fatalf("%+v", g)
	}
	two := g.Ticks[0].Nodes[1]
	if two.Call != 2 || two.Tool != "add" || two.Status != journal.Done || two.Duration == nil || !slices.Equal(two.Reads, []string{"†state.one"}) || !slices.Equal(two.Wrote, []string{"†state.two"}) {
		t.Errorf("%+v", two)
	}
	if want := (history.Wire{From: 1, To: 2, Path: "†state.one", Tick: 1}); !slices.Contains(g.Ticks[0].Wires, want) {
		t.Errorf("no wire %+v in %+v", want, g.Ticks[0].Wires)
	}
	// As of the plan nothing is done, and before it there is no graph.
	s.answer("/v1/contexts/a/ticks", &[]tickAnswer{})
	var ticks []tickAnswer
	s.answer("/v1/contexts/a/ticks", &ticks)
	if len(ticks) != 1 || ticks[0].Plan != "plans/chain.lua" || ticks[0].Calls != 4 || ticks[0].Tick != 1 || ticks[0].Planner || ticks[0].Date == "" {
		t.Fatalf("%+v", ticks)
	}
	s.answer(fmt.Sprintf("/v1/contexts/a/graph?at=%d", ticks[0].Seq), &g)
	if len(g.Ticks) != 1 || len(g.Ticks[0].Nodes) != 4 || slices.ContainsFunc(g.Ticks[0].Nodes, func(n history.Node) bool { return n.Status == journal.Done }) {
		t.Errorf("at the plan: %+v", g)
	}
	s.expect("GET", "/v1/contexts/a/graph?at=1", "", 200, `{"ticks":[]}`)
	s.refused("GET", "/v1/contexts/a/graph?tick=2", "", 404, "no-tick")
	s.refused("GET", "/v1/contexts/a/graph?tick=x", "", 400, "request")
	s.refused("GET", "/v1/contexts/b/graph", "", 404, "no-context")
	s.ask("POST", "/v1/contexts/m/messages", `{"type":"state","x":1}`)
	s.expect("GET", "/v1/contexts/m/graph", "", 200, `{"ticks":[]}`)

	s.ask("POST", "/v1/runs", `{"plan":"plans/rounds.lua","context":"r","wait":true}`)
	s.answer("/v1/contexts/r/ticks", &ticks)
	if len(ticks) != 2 || !ticks[1].Planner || ticks[1].First != 1 {
		t.Errorf("%+v", ticks)
	}
	if s.answer("/v1/contexts/r/graph?tick=1", &g); len(g.Ticks) != 1 || len(g.Ticks[0].Nodes) != 1 || g.Ticks[0].Nodes[0].Tick != 1 {
		t.Errorf("%+v", g)
	}
}

func TestKindsAndAllKinds(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.ask("POST", "/v1/contexts/a/messages", `[{"type":"input","n":1},{"type":"state","x":1},{"type":"state","_instance":"①","x":2}]`)
	s.expect("GET", "/v1/contexts/a/kinds", "", 200, "[{\"kind\":\"input\"},\n{\"kind\":\"state\"},\n{\"instance\":\"①\",\"kind\":\"state\"}]")
	s.expect("GET", "/v1/contexts/a/kinds?at=1", "", 200, `[{"kind":"input"}]`)
	s.expect("GET", "/v1/contexts/a/get", "", 200, `{"input":{"n":1},"state":{"x":1}}`)
	s.expect("GET", "/v1/contexts/a/get?at=1", "", 200, `{"input":{"n":1}}`)
	s.expect("GET", "/v1/contexts/a/get?instance=%E2%91%A0", "", 200, `{"input":{"n":1},"state":{"x":2}}`)
	s.refused("GET", "/v1/contexts/b/get", "", 404, "no-context")
	s.refused("GET", "/v1/contexts/b/kinds", "", 404, "no-context")
	s.refused("GET", "/v1/contexts/a/why", "", 400, "request")
}

// TestGet_Depth: objects and arrays below so many levels are shown by what they are and how many
// entries they have; other values, and empty ones, as they are.
func TestGet_Depth(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.ask("POST", "/v1/contexts/a/messages", `[{"type":"input","n":1},{"type":"state","user":{"name":"Ann","tags":["a","b",{"c":[{}]}],"none":{},"nothing":[],"null":null}}]`)
	const array, object = `{"entries":3,"…":"array"}`, `{"entries":5,"…":"object"}`
	for query, want := range map[string]string{
		"depth=1":                       `{"input":{"entries":1,"…":"object"},"state":{"entries":1,"…":"object"}}`,
		"depth=2":                       `{"input":{"n":1},"state":{"user":` + object + `}}`,
		"ref=state&depth=1":             `{"user":` + object + `}`,
		"ref=state&depth=2":             `{"user":{"name":"Ann","none":{},"nothing":[],"null":null,"tags":` + array + `}}`,
		"ref=state.user.tags&depth=1":   `["a","b",{"entries":1,"…":"object"}]`,
		"ref=state.user.tags&depth=2":   `["a","b",{"c":{"entries":1,"…":"array"}}]`,
		"ref=state.user.tags&depth=3":   `["a","b",{"c":[{}]}]`,
		"ref=state.user.tags&depth=100": `["a","b",{"c":[{}]}]`,
		"ref=state.user.tags":           `["a","b",{"c":[{}]}]`,
		"ref=state.user.name&depth=1":   `"Ann"`,
		"ref=state.user.none&depth=1":   `{}`,
	} {
		s.expect("GET", "/v1/contexts/a/get?"+query, "", 200, want)
	}
	for _, wrong := range []string{"0", "-1", "two", "1.5"} {
		s.refused("GET", "/v1/contexts/a/get?depth="+wrong, "", 400, "request")
	}
	s.refused("GET", "/v1/contexts/a/why?ref=state&depth=1", "", 400, "request")
}

// TestSteps holds that pages of steps join to the whole journal of a context.
func TestSteps(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.runChain()
	var want []step
	for e, err := range s.log.Journal(t.Context(), store.JournalFilter{Context: "a"}) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, step{Call: e.Call, Date: store.FormatDate(e.Date), Event: e.Event, N: e.N, Seq: e.Seq})
	}
	for _, limit := range []int{1, 3, 64} {
		var got []step
		page := stepPage{Next: 1}
		for after := int64(0); page.Next != 0; after = page.Next {
			page = stepPage{}
			s.answer(fmt.Sprintf("/v1/contexts/a/steps?after=%d&limit=%d", after, limit), &page)
			if got = append(got, page.Steps...); len(page.Steps) > limit || len(got) > len(want) {
				t.Fatalf("limit %d: %+v", limit, got)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d:\n got %+v\nwant %+v", limit, got, want)
		}
	}
	s.refused("GET", "/v1/contexts/a/steps?limit=1001", "", 400, "request")
	s.refused("GET", "/v1/contexts/b/steps", "", 404, "no-context")
}

// TestLog_LimitNewestText holds that a log can be read in windows from either end, also where it
// takes several portions, and searched.
func TestLog_LimitNewestText(t *testing.T) {
	s := serve(t, chain, nil, nil)
	long := strings.Repeat("x", portion/3)
	for i := range 20 {
		s.ask("POST", "/v1/contexts/a/messages", fmt.Sprintf(`{"type":"state","k%d":"%s Needle%d."}`, i, long, i))
	}
	seqs := func(query string) (all []int64) {
		t.Helper()
		var messages []struct{ Seq int64 }
		s.answer("/v1/contexts/a/log"+query, &messages)
		for _, m := range messages {
			all = append(all, m.Seq)
		}
		return all
	}
	var whole []int64
	for i := range 20 {
		whole = append(whole, int64(i+1))
	}
	backwards := slices.Clone(whole)
	slices.Reverse(backwards)
	for query, want := range map[string][]int64{
		"":                             whole,
		"?newest=true":                 backwards,
		"?limit=7":                     whole[:7],
		"?limit=7&newest=true":         backwards[:7],
		"?limit=20&newest=true":        backwards,
		"?newest=true&at=3":            {3, 2, 1},
		"?newest=true&at=15&after=10":  {15, 14, 13, 12, 11},
		"?q=nEEdle7.":                  {8},
		"?q=needle1&newest=true":       {20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 2},
		"?q=needle1&limit=2&after=3":   {11, 12},
		"?q=nothing":                   nil,
		"?limit=1&newest=true&after=0": {20},
	} {
		if got := seqs(query); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	s.refused("GET", "/v1/contexts/a/log?newest=yes", "", 400, "request")
	s.refused("GET", "/v1/contexts/a/log?limit=0", "", 400, "request")
}

func TestCalls_ToolLimitCursor(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.runChain()
	calls := func(query string) (all []string) {
		t.Helper()
		var records []journal.Record
		s.answer("/v1/contexts/a/calls"+query, &records)
		for _, r := range records {
			all = append(all, r.Call)
		}
		return all
	}
	for query, want := range map[string][]string{
		"?limit=2":                          {"1.1", "1.2"},
		"?limit=2&cursor=1.2":               {"1.3", "1.4"},
		"?cursor=1.4":                       nil,
		"?tool=add&limit=1":                 {"1.1"},
		"?tool=fail":                        nil,
		"?tool=add&status=done&cursor=1.3":  {"1.4"},
		"?tool=add&status=failed&limit=100": nil,
	} {
		if got := calls(query); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	for _, query := range []string{"?cursor=1", "?cursor=0.1", "?cursor=a.b", "?limit=-1"} {
		s.refused("GET", "/v1/contexts/a/calls"+query, "", 400, "request")
	}
}

// TestDownstream holds that the calls that are said to run again are those that do.
func TestDownstream(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.runChain()
	s.ask("POST", "/v1/runs", `{"plan":"plans/conditions.lua","input":{"n":5},"context":"if","wait":true}`)
	for call, want := range map[string][]string{"1.1": {"1.1", "1.2", "1.3"}, "1.3": {"1.3"}, "1.2": {"1.2"}} {
		var told downstreamAnswer
		if s.answer("/v1/contexts/if/downstream?call="+call, &told); !slices.Equal(told.Calls, want) {
			t.Errorf("with conditions from %s: %v, not %v", call, told.Calls, want)
		}
	}
	for call, want := range map[string][]string{
		"1.1": {"1.1", "1.2"}, // the fourth did not look at what the second wrote
		"1.2": {"1.2"},
		"1.3": {"1.3", "1.4"},
		"1.4": {"1.4"},
	} {
		fork := "fork" + strings.ReplaceAll(call, ".", "-")
		s.ask("POST", "/v1/contexts/a/fork", fmt.Sprintf(`{"context":%q}`, fork))
		for _, name := range []string{"a", fork} {
			var told downstreamAnswer
			if s.answer("/v1/contexts/"+name+"/downstream?call="+call, &told); told.Call != call || !slices.Equal(told.Calls, want) {
				t.Errorf("%s in %s: %+v, want %v", call, name, told, want)
			}
		}
		before, err := s.log.Info(t.Context(), fork)
		if err != nil {
			t.Fatal(err)
		}
		if status, text := s.ask("POST", "/v1/contexts/"+fork+"/resume", fmt.Sprintf(`{"from":%q,"wait":true}`, call)); status != 200 {
			t.Fatal(status, text)
		}
		var ran []string
		for e, err := range s.log.Journal(t.Context(), store.JournalFilter{Context: fork, Seq: before.Messages}) {
			if err != nil {
				t.Fatal(err)
			}
			if r, err := journal.ReadRecord(e); e.Call != "" && err == nil && r.Status == journal.Done && r.Attempts > 1 && !slices.Contains(ran, e.Call) {
				ran = append(ran, e.Call)
			}
		}
		slices.Sort(ran)
		if !slices.Equal(ran, want) {
			t.Errorf("from %s there ran %v, not %v", call, ran, want)
		}
	}
	s.ask("POST", "/v1/runs", `{"plan":"plans/rounds.lua","context":"rounds","wait":true}`)
	var earlier downstreamAnswer
	s.answer("/v1/contexts/rounds/downstream?call=1.1", &earlier)
	if !slices.Equal(earlier.Calls, []string{"1.1"}) || earlier.At == 0 {
		t.Errorf("in an earlier tick: %+v", earlier)
	}
	s.ask("POST", "/v1/contexts/rounds/fork", fmt.Sprintf(`{"context":"rounds-b","at":%d}`, earlier.At))
	if status, text := s.ask("POST", "/v1/contexts/rounds-b/resume", `{"from":"1.1","wait":true}`); status != 200 || !strings.Contains(text, `"done"`) {
		t.Error(status, text)
	}
	s.refused("GET", "/v1/contexts/rounds/downstream?call=3.1", "", 404, "no-call")
	s.refused("GET", "/v1/contexts/a/downstream?call=1.9", "", 404, "no-call")
	s.refused("GET", "/v1/contexts/a/downstream", "", 400, "request")
	s.refused("GET", "/v1/contexts/b/downstream?call=1.1", "", 404, "no-context")
	s.ask("POST", "/v1/runs", `{"plan":"plans/chain.lua","input":{"n":1},"context":"h","approve":"always","wait":true}`)
	s.refused("GET", "/v1/contexts/h/downstream?call=1.1", "", 409, "call")
}

func TestDiff(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.ask("POST", "/v1/contexts/a/messages", `[{"type":"state","x":1,"y":1},{"type":"state","x":2}]`)
	s.ask("POST", "/v1/contexts/a/fork", `{"context":"b","at":1}`)
	s.ask("POST", "/v1/contexts/b/messages", `{"type":"state","z":null}`)
	s.expect("GET", "/v1/diff?a=a&a_at=1&b_at=2", "", 200, `[{"new":2,"old":1,"path":"†state.x"}]`)
	s.expect("GET", "/v1/diff?a=a&b=b", "", 200, "[{\"new\":1,\"old\":2,\"path\":\"†state.x\"},\n{\"new\":null,\"path\":\"†state.z\"}]")
	s.expect("GET", "/v1/diff?a=a", "", 200, "[]")
	s.refused("GET", "/v1/diff", "", 400, "request")
	if text := s.refused("GET", "/v1/diff?a=a&b=c", "", 404, "no-context"); text != "there is no context c" {
		t.Error(text)
	}
	s.refused("GET", "/v1/diff?a=a&a_at=x", "", 400, "request")
}

func TestPlans(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.expect("GET", "/v1/plans", "", 200, "[{\"file\":\"plans/bad.lua\"},\n{\"file\":\"plans/broken.lua\"},\n{\"file\":\"plans/chain.lua\"},\n{\"file\":\"plans/conditions.lua\"},\n{\"file\":\"plans/rounds.lua\"},\n{\"file\":\"plans/sub/echo.json\"}]")
	var p planAnswer
	s.answer("/v1/plans/chain.lua", &p)
	input, _ := p.Input.(map[string]any)
	if p.File != "plans/chain.lua" || p.Kind != "calls" || p.Mode != "eager" || len(p.Problems) > 0 || p.Graph == nil || len(p.Graph.Nodes) != 4 || input["required"] == nil {
		t.Errorf("%+v", p)
	}
	p = planAnswer{}
	if s.answer("/v1/plans/rounds.lua", &p); p.Kind != "function" || p.Graph != nil || p.Input != nil || len(p.Problems) > 0 {
		t.Errorf("%+v", p)
	}
	p = planAnswer{}
	if s.answer("/v1/plans/bad.lua", &p); p.Graph != nil || len(p.Problems) != 1 || !strings.Contains(p.Problems[0].Message, `did you mean "add"?`) {
		t.Errorf("%+v", p)
	}
	p = planAnswer{}
	if s.answer("/v1/plans/broken.lua", &p); p.Kind != "" || len(p.Problems) != 1 || p.Problems[0].Line == 0 {
		t.Errorf("%+v", p)
	}
	if s.answer("/v1/plans/sub/echo.json", &p); p.File != "plans/sub/echo.json" {
		t.Errorf("%+v", p)
	}
	for _, file := range []string{"none.lua", "%2e%2e/obelus.lua", "sub"} {
		if status, text := s.ask("GET", "/v1/plans/"+file, ""); status != 404 {
			t.Errorf("%s: %d %s", file, status, text)
		}
	}
	s.refused("POST", "/v1/plans/chain.lua", "{}", 405, "method")
}

func TestCheck(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.expect("POST", "/v1/check", `{"plan":"plans/chain.lua"}`, 200, "[]")
	for body, want := range map[string]string{
		`{"plan":"plans/bad.lua"}`:   `unknown tool \"ad\"`,
		`{}`:                         `plans/broken.lua`,
		`{"calls":[{"_tool":"ad"}]}`: `unknown tool \"ad\"`,
		`{"calls":[{"_tool":"add","a":"†state.x"}]}`:                                           `"unresolved"`,
		`{"calls":[{"_tool":"add","a":1}],"output":1}`:                                         `[]`,
		`{"calls":{"_tool":"add","a":1},"output":1}`:                                           `[]`,
		`{"calls":[{"type":"state","x":1},{"_tool":"add","a":"†state.x","_outputPath":"†o"}]}`: `[]`,
	} {
		if status, text := s.ask("POST", "/v1/check", body); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, not %s", body, status, text, want)
		}
	}
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"state","x":1}`)
	s.expect("POST", "/v1/check", `{"calls":[{"_tool":"add","a":"†state.x","_outputPath":"†state.y"}],"context":"a"}`, 200, "[]")
	for body, code := range map[string]int{
		`{"plan":"plans/none.lua"}`: 404, `{"plan":"obelus.lua"}`: 422, `{"plan":"plans/../obelus.lua"}`: 422, `{"context":"none"}`: 404,
		`{"plan":"plans/chain.lua","input":[1]}`: 400, `{"input":{}}`: 400,
		`{"plan":"plans/bad.lua","calls":[]}`: 400, `{"output":1}`: 400, `{"calls":{}}`: 400, `{"calls":[1]}`: 400,
	} {
		if status, text := s.ask("POST", "/v1/check", body); status != code {
			t.Errorf("%s: %d %s, not %d", body, status, text, code)
		}
	}
	if status, text := s.ask("GET", "/v1/contexts", ""); status != 200 || strings.Count(text, `"context"`) != 1 {
		t.Error("a check has written something:", text)
	}
}

func TestTools(t *testing.T) {
	s := serve(t, chain, nil, nil)
	var tools []toolAnswer
	s.answer("/v1/tools", &tools)
	byName := map[string]toolAnswer{}
	for _, tool := range tools {
		byName[tool.Name] = tool
	}
	add, _ := byName["add"].Schema.(map[string]any)
	if a := byName["add"].Activity; len(tools) != 4 || add["description"] != "Adds." || a == nil || a.Timeout != 3 || a.Retries != 1 || !a.Idempotent || a.Script != "activities/work.lua" || len(a.SHA256) != 64 {
		t.Errorf("%+v", tools)
	}
	if byName["think"].Activity != nil || byName["think"].File != "activities/work.lua" || byName["fail"].Activity == nil {
		t.Errorf("%+v", byName)
	}
}

func TestCall(t *testing.T) {
	s := serve(t, chain, nil, func(c *Config) { c.Runs = 1 })
	s.expect("POST", "/v1/call", `{"call":{"_tool":"add","a":41}}`, 200, `{"error":null,"result":42,"status":"done"}`)
	s.expect("POST", "/v1/call", `{"call":{"_tool":"see"},"context":{"state":{"x":1}}}`, 200, `{"error":null,"result":{"x":1},"status":"done"}`)
	s.expect("POST", "/v1/call", `{"call":{"_tool":"fail"}}`, 200, `{"error":{"code":"luck","message":"no luck"},"result":null,"status":"failed"}`)
	s.expect("POST", "/v1/call", `{"call":{"_tool":"add","a":"†(†input.a * 2)"},"context":{"input":{"a":20.5}}}`, 200, `{"error":null,"result":42,"status":"done"}`)
	s.expect("POST", "/v1/call", `{"call":{"_tool":"see","v":["††x",{"w":"†state || 7"}]}}`, 200, `{"error":null,"result":["†x",{"w":7}],"status":"done"}`)
	s.refused("POST", "/v1/call", `{"call":{"_tool":"add","a":"†input.a"},"context":{"input":{"a":"x"}}}`, 422, "plan")
	message := s.refused("POST", "/v1/call", `{"call":{"_tool":"add","a":"†input.a"},"context":{"input":{"b":1}}}`, 422, "plan")
	if message != "call 1 (add): nothing is at †input.a: give it in the context" {
		t.Error(message)
	}
	s.refused("POST", "/v1/call", `{"call":{"_tool":"ad"}}`, 422, "plan")
	s.refused("POST", "/v1/call", `{"call":{"_tool":"add","a":"x"}}`, 422, "plan")
	s.refused("POST", "/v1/call", `{"call":1}`, 400, "request")
	s.refused("POST", "/v1/call", `{}`, 400, "request")
	if status, text := s.ask("POST", "/v1/call", `{"call":{"_tool":"think"}}`); status != 200 || !strings.Contains(text, "run by no activity") {
		t.Error(status, text)
	}
	s.expect("GET", "/v1/contexts", "", 200, "[]")
	leave, err := s.server.trial()
	if err != nil {
		t.Fatal(err)
	}
	s.refused("POST", "/v1/call", `{"call":{"_tool":"add","a":41}}`, 429, "full")
	leave()
	if status, text := s.ask("POST", "/v1/call", `{"call":{"_tool":"add","a":41}}`); status != 200 {
		t.Error(status, text)
	}
}

func TestCode(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.runChain()
	ran := s.host.Generation().Digest
	s.write("activities/work.lua", strings.Replace(chain["activities/work.lua"], "no luck", "none", 1))
	if r := s.host.Reload(); r.Err != nil {
		t.Fatal(r.Err)
	}
	var records []journal.Record
	s.answer("/v1/contexts/a/calls", &records)
	for digest, want := range map[string]string{records[0].Generation: chain["activities/work.lua"], ran: chain["activities/work.lua"], s.host.Generation().Digest: strings.Replace(chain["activities/work.lua"], "no luck", "none", 1)} {
		var script scriptAnswer
		if s.answer("/v1/code/"+digest+"/activities/work.lua", &script); script.Source != want || script.Path != "activities/work.lua" || script.Generation != digest {
			t.Errorf("%s: %+v", digest, script)
		}
	}
	s.refused("GET", "/v1/code/"+ran+"/activities/none.lua", "", 404, "no-code")
	s.refused("GET", "/v1/code/0000/activities/work.lua", "", 404, "no-code")
}

func TestChildren(t *testing.T) {
	files := map[string]string{"plans/outer.lua": `return { { _tool = "hand", _delegate = "plans/inner.lua", _outputPath = "†state.x" } }`,
		"plans/inner.lua": `return { calls = {}, output = 1 }`, "activities/hand.lua": `Tool.register("hand", {})`}
	s := serve(t, files, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/outer.lua","context":"a","wait":true}`)
	s.ask("POST", "/v1/contexts/other/messages", `{"type":"state","x":1}`)
	s.ask("POST", "/v1/contexts/a/fork", `{"context":"f"}`)
	names := func(query string) (all []string) {
		var children []history.Summary
		s.answer("/v1/contexts/a/children"+query, &children)
		for _, c := range children {
			if c.Parent != "a" {
				t.Errorf("%+v", c)
			}
			all = append(all, c.Context)
		}
		return all
	}
	if got := names(""); !slices.Equal(got, []string{"a.1.1", "f"}) {
		t.Error(got)
	}
	if got := names("?limit=1"); !slices.Equal(got, []string{"a.1.1"}) {
		t.Error(got)
	}
	s.expect("GET", "/v1/contexts/other/children", "", 200, "[]")
	s.refused("GET", "/v1/contexts/none/children", "", 404, "no-context")
}

func TestReplay(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.runChain()
	before, err := s.log.Info(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	s.expect("POST", "/v1/contexts/a/replay", "", 200, `{"calls":4,"context":"a","differences":[],"same":true}`)
	s.ask("POST", "/v1/runs", `{"plan":"plans/rounds.lua","context":"r","wait":true}`)
	s.write("plans/rounds.lua", strings.Replace(chain["plans/rounds.lua"], "a = 1", "a = 2", 1))
	if status, text := s.ask("POST", "/v1/contexts/r/replay", ""); status != 200 || !strings.Contains(text, `"same":false`) || !strings.Contains(text, `"what":`) {
		t.Error(status, text)
	}
	if after, err := s.log.Info(t.Context(), "a"); err != nil || after.Messages != before.Messages || !after.Updated.Equal(before.Updated) {
		t.Error("a replay has written:", after, err)
	}
	s.ask("POST", "/v1/contexts/m/messages", `{"type":"state","x":1}`)
	s.refused("POST", "/v1/contexts/m/replay", "", 404, "no-run")
	s.refused("POST", "/v1/contexts/none/replay", "", 404, "no-context")
	s.ask("POST", "/v1/runs", `{"plan":"plans/chain.lua","input":{"n":1},"context":"h","approve":"always","wait":true}`)
	s.refused("POST", "/v1/contexts/h/replay", "", 409, "unfinished")
}

// follow opens a stream of all contexts, and hands its events on.
func (s *site) follow(query, after string) <-chan event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.http.URL+"/v1/events"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil || response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatal(response, err)
	}
	all := make(chan event, 100)
	go func() {
		defer response.Body.Close()
		defer close(all)
		var e event
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); {
			case field == "id":
				e.id = value
			case field == "event":
				e.kind = value
			case field == "data":
				e.data = value
			case lines.Text() == "" && e.kind != "":
				all <- e
				e = event{}
			}
		}
	}()
	return all
}

// TestFeed holds that who follows all contexts gets what changes in any, once, and after a break
// what it lacks.
func TestFeed(t *testing.T) {
	s := serve(t, chain, nil, nil)
	s.ask("POST", "/v1/contexts/old/messages", `{"type":"state","x":1}`)
	feed := s.follow("", "")
	s.runChain()
	until := func(feed <-chan event, name, want string) (id string) {
		t.Helper()
		for e := range feed {
			var told history.Summary
			if err := json.Unmarshal([]byte(e.data), &told); err != nil || e.kind != "context" {
				t.Fatal(e, err)
			}
			if told.Context == "old" {
				t.Errorf("what has not changed: %+v", e)
			}
			id = e.id
			if told.Context == name && strings.Contains(e.data, want) {
				return id
			}
		}
		t.Fatalf("the stream ended before %s had %s", name, want)
		return ""
	}
	id := until(feed, "a", `"status":"done"`)
	if n, err := strconv.Atoi(id); err != nil || n == 0 {
		t.Errorf("id %q", id)
	}
	s.ask("POST", "/v1/contexts/b/messages", `{"type":"state","x":1}`)
	until(feed, "b", `"messages":1`)
	again := s.follow("", id)
	s.ask("POST", "/v1/contexts/c/messages", `{"type":"state","x":1}`)
	seen := map[string]bool{}
	for e := range again {
		var told history.Summary
		if err := json.Unmarshal([]byte(e.data), &told); err != nil {
			t.Fatal(err)
		}
		if seen[told.Context] = true; seen["b"] && seen["c"] {
			break
		}
	}
	s.refused("GET", "/v1/events", "", 400, "request", "Last-Event-ID", "x")
	s.server.streams.Add(mostStreams)
	s.refused("GET", "/v1/events", "", 429, "full")
	s.server.streams.Add(-mostStreams)
	if status, text := s.ask("HEAD", "/v1/events", ""); status != 200 || text != "" {
		t.Error(status, text)
	}
}

// TestFeed_FromTheBeginning holds that who has the event 0 lacks all that the log has.
func TestFeed_FromTheBeginning(t *testing.T) {
	s := serve(t, chain, nil, nil)
	sends := func(feed <-chan event, names ...string) {
		t.Helper()
		for len(names) > 0 {
			e, ok := <-feed
			var told history.Summary
			if err := json.Unmarshal([]byte(e.data), &told); err != nil || !ok {
				t.Fatalf("the stream ended before it had %v: %+v, %v", names, e, err)
			}
			names = slices.DeleteFunc(names, func(name string) bool { return name == told.Context })
		}
	}
	empty := s.follow("?after=0", "")
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"state","x":1}`)
	sends(empty, "a")
	s.ask("POST", "/v1/contexts/b/messages", `{"type":"state","x":1}`)
	for _, from := range []struct{ query, last string }{{"?after=0", ""}, {"", "0"}, {"?after=1", "0"}} {
		sends(s.follow(from.query, from.last), "a", "b")
	}
}

// TestFeed_Inbox holds that the number of decisions that wait is sent at first and when it changes.
func TestFeed_Inbox(t *testing.T) {
	s := serve(t, chain, nil, nil)
	feed := s.follow("?inbox", "")
	next := func(want string) {
		t.Helper()
		if e := <-feed; e.kind != "inbox" || e.data != want {
			t.Fatalf("%+v, not %s", e, want)
		}
	}
	next(`{"waiting":0}`)
	s.ask("POST", "/v1/runs", `{"plan":"plans/chain.lua","input":{"n":1},"context":"h","approve":"always","wait":true}`)
	next(`{"waiting":2}`)
	s.ask("DELETE", "/v1/runs/h", "")
	if err := s.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for e := range feed { // it ends
		if e.kind != "inbox" {
			t.Error(e)
		}
	}
}
