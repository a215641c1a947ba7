package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/host/internal/limits"
	"obelus/store"
)

// project makes a folder of files in memory.
func project(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func open(t testing.TB, files map[string]string) *Generation {
	t.Helper()
	h, err := Open(Config{FS: project(files)})
	if err != nil {
		t.Fatal(err)
	}
	return h.Generation()
}

// one opens a project of one activity, "a", whose function has this body.
func one(t testing.TB, body string) *Generation {
	t.Helper()
	return lasting(t, "10s", body)
}

// lasting is a project of one activity, which has so long.
func lasting(t testing.TB, timeout, body string) *Generation {
	t.Helper()
	return open(t, map[string]string{"activities/a.lua": fmt.Sprintf("Activity.register('a', {timeout = %q}, function(call, context, tool) %s\nend)", timeout, body)})
}

func call(g *Generation, name string, in plan.Invocation) (plan.Result, error) {
	return g.Registry().Activities[name].Activity.Run(context.Background(), in)
}

// runA calls activity "a" of a project and gives its result as JSON.
func runA(g *Generation, in plan.Invocation) (string, error) {
	r, err := call(g, "a", in)
	if err != nil {
		return "", err
	}
	return string(store.EncodeJSON(r.Value)), nil
}

// mustJSON reads JSON that a test is sure of.
func mustJSON(t testing.TB, text string) any {
	t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	return mustJSON(t, text).(map[string]any)
}

func TestResults(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"nothing", ``, `null`},
		{"nil", `return nil`, `null`},
		{"nil nil", `return nil, nil`, `null`},
		{"false and more", `return false, "ignored"`, `false`},
		{"number", `return 7`, `7`},
		{"fraction", `return 0.1`, `0.1`},
		{"large", `return 2^53`, `9007199254740992`},
		{"larger", `return 2^60 * 3`, `3458764513820540928`},
		{"huge", `return 1e300`, `1e+300`},
		{"minus zero", `return -0`, `0`},
		{"array", `return {1, "two", {3}}`, `[1,"two",[3]]`},
		{"object", `return {b = 1, a = {c = true}}`, `{"a":{"c":true},"b":1}`},
		{"empty", `return {}`, `{}`},
		{"made an array", `return {x = json.array(), y = json.array{}}`, `{"x":[],"y":[]}`},
		{"null", `return {a = json.null, b = {json.null, 1}}`, `{"a":null,"b":[null,1]}`},
		{"emptied array", `local t = call.list; while #t > 0 do table.remove(t) end; return t`, `[]`},
		{"untouched", `return call.list`, `[1,null,2]`},
		{"null in an array", `return call.list[2] == json.null and #call.list`, `3`},
		{"null in an object", `return call.gone == nil`, `true`},
		{"big integer", `return {call.big, type(call.big)}`, `["9007199254740993","string"]`},
		{"largest exact", `return call.exact`, `9007199254740992`},
		{"no scopes", `return next(context) == nil`, `true`},
		{"json round trip", `return json.decode(json.encode({a = {1, 2}, e = json.array()}))`, `{"a":[1,2],"e":[]}`},
	}
	in := plan.Invocation{Call: object(t, `{"_tool":"a","list":[1,null,2],"gone":null,"big":9007199254740993,"exact":9007199254740992}`)}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := runA(one(t, test.body), in)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestEmptyTable_BySchema(t *testing.T) {
	tests := []struct{ name, tool, body, want string }{
		{"array", `{"_output":{"type":"array"}}`, `return {}`, `[]`},
		{"in properties", `{"properties":{"_output":{"type":"array"}}}`, `return {}`, `[]`},
		{"below", `{"_output":{"properties":{"items":{"type":"array"}}}}`, `return {items = {}, other = {}}`, `{"items":[],"other":{}}`},
		{"items", `{"_output":{"type":"array","items":{"type":["array","null"]}}}`, `return {{}, {}}`, `[[],[]]`},
		{"either", `{"_output":{"type":["array","object"]}}`, `return {}`, `{}`},
		{"reference", `{"_output":{"$defs":{"l":{"type":"array"}},"properties":{"x":{"$ref":"#/$defs/l"}}}}`, `return {x = {}}`, `{"x":[]}`},
		{"reference to the tool", `{"properties":{"_output":{"$ref":"#/$defs/l"}},"$defs":{"l":{"type":"array"}}}`, `return {}`, `[]`},
		{"any of", `{"_output":{"anyOf":[{"type":"array"},{"type":"null"}]}}`, `return {}`, `[]`},
		{"additional", `{"_output":{"additionalProperties":{"type":"array"}}}`, `return {x = {}}`, `{"x":[]}`},
		{"no type named", `{"_output":{"additionalProperties":{"items":{}}}}`, `return {x = {}}`, `{"x":{}}`},
		{"digits", `{"_output":{"type":"integer"}}`, `return "9007199254740993"`, `9007199254740993`},
		{"digits of text", `{"_output":{"type":"string"}}`, `return "9007199254740993"`, `"9007199254740993"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := open(t, map[string]string{"activities/a.lua": fmt.Sprintf("Tool.register('a', json.decode [[%s]])\nActivity.register('a', function() %s end)", test.tool, test.body)})
			result, err := engine.Try(t.Context(), g.Registry(), map[string]any{"_tool": "a", "_outputPath": "†r"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(store.EncodeJSON(result.Value)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestFailure_NoFailure holds that a failure is a JSON value or a mistake of the
// script, be it in a table or not.
func TestFailure_NoFailure(t *testing.T) {
	for body, want := range map[string]string{
		`return nil, print`:                      `activities/a.lua: activity a: error: a function is not a JSON value`,
		`return nil, { f = print }`:              `activities/a.lua: activity a: error.f: a function is not a JSON value`,
		`return nil, coroutine.create(print)`:    `activities/a.lua: activity a: error: a thread is not a JSON value`,
		`return nil, io.stdout`:                  `activities/a.lua: activity a: error: a userdata is not a JSON value`,
		`return nil, Output.to("†a", 1)`:         `activities/a.lua: activity a: error: Output.to(…) must be returned by itself`,
		`return nil, 0/0`:                        `activities/a.lua: activity a: error: NaN is not a JSON number`,
		"\nerror(print)":                         `activities/a.lua:2: error: a function is not a JSON value`,
		"\nerror({ f = print })":                 `activities/a.lua:2: error.f: a function is not a JSON value`,
		"\nassert(nil, coroutine.create(print))": `activities/a.lua:2: error: a thread is not a JSON value`,
	} {
		_, err := runA(one(t, body), plan.Invocation{})
		if one, ok := err.(*ScriptError); !ok || one.Error() != want {
			t.Errorf("%s\ngot  %T %v\nwant %s", body, err, err, want)
		}
	}
}

func TestFailure(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"nil and text", `return nil, "no such order"`, `{"message":"no such order"}`},
		{"nil and table", `return nil, {message = "no", code = "gone", id = 3}`, `{"code":"gone","id":3,"message":"no"}`},
		{"table without message", `return nil, {code = "gone"}`, `{"code":"gone","message":"gone"}`},
		{"nil and number", `return nil, 42`, `{"message":"42"}`},
		{"error", "\nerror('no')", `{"message":"no","script":"activities/a.lua:2"}`},
		{"error at level 2", "local function check()\nerror('no', 2) end\ncheck()", `{"message":"no","script":"activities/a.lua:3"}`},
		{"error without place", `error("no", 0)`, `{"message":"no"}`},
		{"error table", `error({code = "limit", message = "too much"})`, `{"code":"limit","message":"too much"}`},
		{"error nil", `error()`, `{"message":"failed","script":"activities/a.lua:1"}`},
		{"error null", `error(json.null)`, `{"message":"failed","script":"activities/a.lua:1"}`},
		{"error number", "\nerror(5)", `{"message":"5","script":"activities/a.lua:2"}`},
		{"error of bytes", `error("x\255\195y \0003é\200")`, `{"message":"x\\255\\195y \u00003é\\200","script":"activities/a.lua:1"}`},
		{"error table of bytes", `error({message = "x\255", deep = {"\254"}})`, `{"deep":["\\254"],"message":"x\\255"}`},
		{"error that says bytes", `return nil, setmetatable({}, { __tostring = function() return "\255" end })`, `{"message":"\\255"}`},
		{"nil and bytes", `return nil, "x\255"`, `{"message":"x\\255"}`},
		{"error list", `error({1, 2})`, `{"message":"[1,2]"}`},
		{"error object", `error(setmetatable({n = 1}, {__tostring = function(e) return "n is " .. e.n end}))`, `{"message":"n is 1","n":1}`},
		{"assert", `assert(false, "not that")`, `{"message":"not that","script":"activities/a.lua:1"}`},
		{"assert nil err", `assert(nil, {code = "x"})`, `{"code":"x","message":"x"}`},
		{"assert nil", "\nassert(false, nil)", `{"message":"assertion failed!","script":"activities/a.lua:2"}`},
		{"assert number", `assert(false, 7)`, `{"message":"7","script":"activities/a.lua:1"}`},
		{"assert bare", `assert(nil)`, `{"message":"assertion failed!","script":"activities/a.lua:1"}`},
		{"raised again", `local ok, e = pcall(error, {code = "x"}); error(e)`, `{"code":"x","message":"x"}`},
		{"in a callback", `("x"):gsub("x", function() error("deep", 0) end)`, `{"message":"deep"}`},
		{"timeout", `while true do end`, `{"code":"timeout","message":"timed out after 200ms","script":"activities/a.lua:1"}`},
		{"timeout in a pcall", "\nwhile true do pcall(function() while true do end end) end", `{"code":"timeout","message":"timed out after 200ms","script":"activities/a.lua:2"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			timeout := "10s"
			if strings.HasPrefix(test.name, "timeout") {
				timeout = "200ms"
			}
			_, err := runA(lasting(t, timeout, test.body), plan.Invocation{})
			failure, ok := err.(*plan.Failure)
			if !ok {
				t.Fatalf("got %T %v, want a failure", err, err)
			}
			if got := string(store.EncodeJSON(failure.Fields)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestRouting(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"to", `return Output.to("†state.user.failed", {n = 1})`, `{"Value":{"n":1},"To":"†state.user.failed","Message":null,"Pure":true,"Loose":true}`},
		{"message", `return Message.data{kind = "state", data = {a = 1}}`, `{"Value":null,"To":"","Message":{"data":{"a":1},"kind":"state","type":"data"},"Pure":true,"Loose":true}`},
		{"table like a message", `return {type = "data", data = {a = 1}}`, `{"Value":null,"To":"","Message":{"data":{"a":1},"type":"data"},"Pure":true,"Loose":true}`},
		{"state", `return Message.state{user = "x"}`, `{"Value":null,"To":"","Message":{"data":{"user":"x"},"kind":"state","type":"data"},"Pure":true,"Loose":true}`},
		{"only a type", `return {type = "data"}`, `{"Value":{"type":"data"},"To":"","Message":null,"Pure":true,"Loose":true}`},
		{"another type", `return {type = "state", data = 1}`, `{"Value":{"data":1,"type":"state"},"To":"","Message":null,"Pure":true,"Loose":true}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := call(one(t, test.body), "a", plan.Invocation{})
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			if err := e.Encode(r); err != nil {
				t.Fatal(err)
			}
			if got := string(bytes.TrimSpace(b.Bytes())); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestArguments_Copied(t *testing.T) {
	in := plan.Invocation{
		Call:    object(t, `{"_tool":"a","list":[1,{"x":1}],"o":{"a":{"b":1}}}`),
		Context: object(t, `{"state":{"a":[1,2,3]}}`),
		Tool:    object(t, `{"properties":{"x":{"type":"string"}}}`),
	}
	before := string(store.EncodeJSON([]any{in.Call, in.Context, in.Tool}))
	_, err := runA(one(t, `
		call.list[2].x = 2; table.insert(call.list, 3); call.o.a.b = nil; call.new = 1
		context.state.a[1] = 9; context.state.b = 1; tool.properties.x = nil; rawset(tool, "y", 1)`), in)
	if err != nil {
		t.Fatal(err)
	}
	if after := string(store.EncodeJSON([]any{in.Call, in.Context, in.Tool})); after != before {
		t.Errorf("a script changed what is shared: %s", after)
	}
}

func TestCall_Canceled(t *testing.T) {
	g := one(t, `while true do end`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := g.Registry().Activities["a"].Activity.Run(ctx, plan.Invocation{})
	var script *ScriptError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &script) {
		t.Errorf("got %T %v", err, err)
	}
}

func TestDeadline_OfCaller(t *testing.T) {
	g := open(t, map[string]string{"activities/a.lua": `Activity.register("a", function() while true do end end)`})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := g.Registry().Activities["a"].Activity.Run(ctx, plan.Invocation{})
	if failure, ok := err.(*plan.Failure); !ok || failure.Fields["code"] != "timeout" {
		t.Errorf("got %T %v", err, err)
	}
}

// bareGeneration is that of no project.
func bareGeneration() *Generation {
	c := Config{}.withDefaults()
	return &Generation{config: c, project: newProject(c, limits.Defaults)}
}

func bareSession() *session { return newSession(bareGeneration()) }
