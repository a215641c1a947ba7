package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// goText is what no text for people has of Go, unless they wrote it themselves.
var goText = regexp.MustCompile(`runtime error|nil pointer|goroutine \d|interface \{|map\[string\]|0xc0[0-9a-f]{8}|%!|\.go:\d`)

// readable holds that a text is one for people who gave a source.
func readable(t *testing.T, text, source string) {
	t.Helper()
	if m := goText.FindString(text); m != "" && !strings.ContainsAny(source, `%\`) && !strings.Contains(source, m) {
		t.Fatalf("it shows Go (%s): %s", m, text)
	}
	if !utf8.ValidString(text) && utf8.ValidString(source) {
		t.Fatalf("it is no text: %q", text)
	}
}

// planProject is a project in which plans are read and run.
func planProject(f *testing.F) (files fstest.MapFS, h *Host) {
	files = project(map[string]string{
		"obelus.lua": `return { timeout = 1, drain = 0, limits = { instructions = 1000000, memory = "256MB", result = "64KB", string = "64KB" } }`,
		"activities/a.lua": `
			Tool.register("echo", { properties = { n = { type = "number" }, items = { type = "array", items = { type = "object" } }, _outputPath = { pattern = "^†" } } })
			Activity.register("echo", function(call) return { n = call.n, items = call.items } end)
			Tool.register("sum", { properties = { _outputPath = { const = "†state.sum" }, _scopes = { const = { "state" } } }, required = { "n" } })
			Activity.register("sum", function(call, context) return call.n + (context.state.sum or 0) end)
			Activity.register("fail", function() return nil, "no luck" end)
			Activity.register("to", function(call) return Output.to(call.path, call.value) end)
			Delegate.register("twice", { calls = { { _tool = "echo", n = "†input.n", _outputPath = "†state" } }, output = "†state.n" })`,
	}).(fstest.MapFS)
	h, err := Open(Config{FS: files})
	if err != nil {
		f.Fatal(err)
	}
	return files, h
}

// lineEnd is what ends a line for Lua, and more than what does for JSON.
var lineEnd = regexp.MustCompile(`\r\n|\n\r|\n|\r`)

func countLines(source string) int { return len(lineEnd.FindAllString(source, -1)) + 1 }

// refusal holds that what a plan is refused for says what is wrong with it: the
// file, a line that it has, and words.
func refusal(t *testing.T, err error, file, source string) {
	t.Helper()
	readable(t, err.Error(), source)
	problems, isScript := Problems(err)
	var refused *plan.PlanError
	var message *plan.MessageError
	switch {
	case isScript:
	case errors.As(err, &refused):
		problems = refused.Problems
	case errors.As(err, &message):
		return
	default:
		t.Fatalf("it is refused by a %T: %v", err, err)
	}
	if len(problems) == 0 {
		t.Fatalf("it is refused, and nothing is wrong with it: %v", err)
	}
	for _, p := range problems {
		if p.Message == "" || p.File != file || p.Line < 0 || p.Line > countLines(source) {
			t.Fatalf("it is wrong at a place that is not there: %+v", p)
		}
	}
}

// carriedOut holds that a plan which checks runs, and that one which does not is
// refused for the same reason and leaves nothing.
func carriedOut(t *testing.T, h *Host, request *plan.Request, registry *plan.Registry, source string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	log := memory.New()
	runner := h.Generation().Settings().Runner(log, registry)
	runner.Ticks = 3
	start := engine.Start{Context: "c", Request: request}
	_, unchecked := runner.Check(ctx, start)
	if unchecked != nil {
		refusal(t, unchecked, request.Name, source)
	}
	outcome, err := runner.Run(ctx, start)
	switch {
	case ctx.Err() != nil:
		t.Fatal("it does not come to its end")
	case unchecked != nil:
		if err == nil || err.Error() != unchecked.Error() {
			t.Fatalf("it is refused when it is checked:\n%v\nand when it is run:\n%v", unchecked, err)
		}
		for info := range log.Contexts(ctx, store.ContextFilter{}) {
			t.Fatalf("it is refused, and leaves context %s: %v", info.Context, err)
		}
		return
	case err != nil:
		t.Fatalf("it checks, and does not run: %v", err)
	case !slices.Contains([]journal.RunStatus{journal.RunDone, journal.RunFailed, journal.RunWaiting}, outcome.Status):
		t.Fatalf("its run is %s", outcome.Status)
	}
	readable(t, outcome.Error, source)
	for _, call := range outcome.Calls {
		message, _ := call.Error["message"].(string)
		readable(t, message, source)
		if outcome.Status == journal.RunDone && !slices.Contains([]journal.Status{journal.Done, journal.Failed, journal.Skipped, journal.Cancelled}, call.Status) {
			t.Fatalf("the run is done, and call %s is %s", call.Call, call.Status)
		}
	}
}

// FuzzPlanJSON holds that a plan in JSON is refused with its place, or gives each
// call with the line that it begins on and runs if it checks.
func FuzzPlanJSON(f *testing.F) {
	for _, text := range []string{
		`[]`, `{"calls":[]}`, `3`, `{`, ``, "\ufeff[]", `{"calls":{}}`, `{"calls":[],"plan":[]}`, `{"moode":1,"calls":[]}`, `[3, null, []]`,
		"[\n {\"_tool\": \"echo\", \"n\": 1, \"_outputPath\": \"†state.a\"},\n\n {\"_tool\": \"echo\", \"n\": \"†state.a.n + 1\", \"_outputPath\": \"†state.b || †state.c\"}]",
		"{\"context\": [{\"type\": \"state\", \"sum\": 3}],\n \"plan\":\n [\n  {\"_tool\": \"sum\", \"n\": 4}],\n \"output\":\n  \"†state.sum\", \"schema\": {\"type\": \"number\"}}",
		`{"calls":[{"_tool":"fail","_outputPath":"†a.x || †a.y"},{"_tool":"echo","items":["†a.x"],"_outputPath":"†b"},{"_tool":"fail","_outputPath":"†c"}],"output":"†a.y.message"}`,
		`{"tools":{"own":{"_activity":"echo","properties":{"n":{"type":"integer"}}}},"calls":[{"_tool":"own","n":1.5,"_outputPath":"†x"}],"mode":"lazy"}`,
		`[{"_tool":"echo","n":"†b.n","_outputPath":"†a"},{"_tool":"echo","n":"†a.n","_outputPath":"†b"}]`,
		`[{"_delegate":"twice","_outputPath":"†x","_scopes":["input"]},{"_delegate":"p.json","_outputPath":"†y"},{"_delegate":"anonymous","_outputPath":"†z"}]`,
		`{"calls":[{"_tool":"echo","_instance":"*","_outputPath":"†a"}],"context":[{"type":"input","n":1,"_instance":"①"}]}`,
		`[{"_tool":"to","path":"††a.y","value":[1],"_outputPath":"†a.x || (†a.y && †b)","_outputMethod":"push"},{"_tool":"to","path":"††c","_outputPath":"†a"}]`,
		`{"calls":[{"_tool":"ecko"},{"_tool":"sum"},{"_tool":"sum","n":"x","_outputPath":"†other"},{"_tool":"echo","n":"†(","_scopes":"state"}]}`,
		`{"calls":[{"_tool":"echo","_output":{"type":"string"},"_outputPath":"†a"}],"schema":{"type":"nothing"},"output":"†("}`,
		`{"context":[{"type":"tool","tool":{"t":{"type":7}}},{"type":"sate"}],"calls":[]}`,
		`{"context":[{"type":"state","schema":{"required":["x"]}},{"type":"state","y":1}],"calls":[]}`,
	} {
		f.Add([]byte(text))
	}
	files, h := planProject(f)
	const file = "p.json"
	f.Fuzz(func(t *testing.T, source []byte) {
		files[file] = &fstest.MapFile{Data: source}
		request, registry, err := h.Plan(file)
		if err != nil {
			refusal(t, err, file, string(source))
			return
		}
		lines := strings.SplitAfter(string(source), "\n")
		for i, call := range request.Calls {
			if call.Line < 1 || call.Line > len(lines) || !begins(strings.Join(lines[call.Line-1:], ""), len(lines[call.Line-1]), call.Call) {
				t.Fatalf("call %d does not begin on line %d", i+1, call.Line)
			}
		}
		carriedOut(t, h, request, registry, string(source))
	})
}

// begins tells whether a JSON value begins within the first bytes of a text.
func begins(text string, within int, v any) bool {
	for i := range within {
		d := json.NewDecoder(strings.NewReader(text[i:]))
		d.UseNumber()
		var found any
		if d.Decode(&found) == nil && reflect.DeepEqual(found, v) {
			return true
		}
	}
	return false
}

// FuzzPlanLua holds that whatever stands in a plan's Lua file, it gives a plan,
// the same one each time, or an error of the script; and that what it gives runs
// if it checks.
func FuzzPlanLua(f *testing.F) {
	for _, text := range []string{
		`return {}`, `return`, `return 'x'`, `return {`, "return {\n { _tool = 'echo', n = 1, _outputPath = '†state.a' },\n { _tool = 'sum', n = '†state.a.n' } }",
		"return { context = { Message.state{ sum = 2 }, { type = 'input', n = 1 } }, calls = { { _tool = 'sum', n = '†input.n' } }, output = '†state.sum', schema = { type = 'number' } }",
		"return function(context) if context.a then return { output = '†a' } end return { calls = { { _tool = 'echo', n = 3, _outputPath = '†a' } } } end",
		"return { scopes = { 'a' }, calls = function(context) return nil, 'no' end }", "return { calls = {}, context = 'x' }", "return { { _tool = 'x' }, nil, { _tool = 'y' } }",
		"Tool.register('t', { required = { 'n' } })\nActivity.register('t', function(call) return call.n end)\nreturn { { _tool = 't', n = 1, _outputPath = '†a' } }",
		"Delegate.register('d', { { _tool = 'echo' } })\nreturn { { _delegate = 'd', _outputPath = '†a' }, { _delegate = 'p.lua', _outputPath = '†b' } }",
		"Activity.register('echo', print)\nreturn {}", "local x = nil + 1", "error('set X first')", "error({ code = 'x' })", "error()", "while true do end", "local function f() return f() end f()",
		"return setmetatable({}, { __index = function() error('no') end })", "local t = {} t[1] = t return t", "return { { _tool = 'echo', n = 0/0 } }", "#!/bin/lua\n\ufeffreturn {}",
		"return { calls = {}, output = json.null, mode = 'lazy', tools = { x = { properties = json.decode('{}') } } }", "local s = 'x' while true do s = s .. s end", "goto x", "return ...",
		"local t = {} for i = 1, 3 do t[i] = { _tool = 'to', path = '††a', value = i, _outputPath = '†a', _outputMethod = 'push' } end return t", "return { calls = coroutine.wrap(function() coroutine.yield({}) end)() }",
		"return string.rep, pcall(error), require('nothing')", "local ok, e = pcall(string.rep) return { { _tool = 'echo', n = e } }", "return { [1.5] = 1 }", "x = 1", "return _G", "return { calls = { print } }",
	} {
		f.Add([]byte(text))
	}
	files, h := planProject(f)
	const file = "p.lua"
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) == 0 {
			return // somebody may be writing it: it is waited for
		}
		files[file] = &fstest.MapFile{Data: source}
		began := time.Now()
		request, registry, err := h.Plan(file)
		again, _, errAgain := h.Plan(file)
		if took := time.Since(began); took > 15*time.Second {
			t.Fatalf("it took %s to read it twice", took)
		}
		if err != nil {
			refusal(t, err, file, string(source))
			return
		}
		if errAgain != nil || describe(request) != describe(again) {
			t.Fatalf("it gives\n%s\nand then %v\n%s", describe(request), errAgain, describe(again))
		}
		for i, call := range request.Calls {
			if call.Line < 0 || call.Line > countLines(string(source)) {
				t.Fatalf("call %d is on line %d", i+1, call.Line)
			}
		}
		carriedOut(t, h, request, registry, string(source))
	})
}

// stringAnswers is Lua that tells what the functions on strings make of a line of
// three, in hex: whether they raise, or what they give.
const stringAnswers = `
local function hex(s) return (s:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local function text(h) return (h:gsub("%x%x", function(c) return string.char(tonumber(c, 16)) end)) end
local function show(ok, ...)
  if not ok then return "raised" end
  local parts = {}
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if type(v) == "string" then v = "'" .. hex(v) .. "'" elseif type(v) == "number" then v = v ~= v and "nan" or ("%.17g"):format(v) end
    parts[i] = tostring(v)
  end
  return table.concat(parts, ",")
end
local function all(s, p)
  local found = {}
  for a, b in s:gmatch(p) do found[#found + 1] = show(true, a, b) end
  return unpack(found)
end
local function answer(line)
  local s, p, r = line:match("^(%x*) (%x*) (%x*)$")
  s, p, r = text(s), text(p), text(r)
  return table.concat({
    show(pcall(string.find, s, p)), show(pcall(string.find, s, p, -2)), show(pcall(string.find, s, p, 2, true)), show(pcall(string.match, s, p)),
    show(pcall(string.gsub, s, p, r)), show(pcall(string.gsub, s, p, { [s] = r, a = 1, b = false }, 2)), show(pcall(all, s, p)),
    show(pcall(string.format, r, s, 2.5)), show(pcall(string.format, r, 65, s)), show(pcall(tonumber, s)), show(pcall(tonumber, s, 16)), show(pcall(function() return s + 1 end)),
    show(pcall(string.byte, s, 2, -2)), show(pcall(string.sub, s, -3, 4)), show(pcall(string.upper, s)), show(pcall(string.reverse, s)), show(pcall(function() return s < p, s == r end)),
  }, ";")
end
`

// odd is what C takes for a number and nobody means, or may turn into any integer.
// And it reads on behind a replacement that ends with %, and its text ends where %c
// writes a zero.
var (
	odd    = regexp.MustCompile(`(?i)inf|nan|^\s*[-+]|[0-9a-f]{7}|[ep]\+?([4-9]|\d\d)`)
	ending = regexp.MustCompile(`%$|%[-+ #0]*\d*\.?\d*c`)
)

// FuzzStrings holds that the functions on strings, which are Obelus's own, do what
// those of a stock Lua do.
func FuzzStrings(f *testing.F) {
	stock, err := exec.LookPath("lua5.1")
	if err != nil {
		f.Skip("there is no lua5.1 here to compare with")
	}
	for _, seed := range [][3]string{
		{"hello world", "(%w+) (%w+)", "%2 %1"}, {"key = value", "^%s*(.-)%s*=", "%5.1f|%-8s|"}, {"THE (quick) fox", "%((%a+)%)", "%d %x"}, {"a,b,,c", "([^,]*)", "<%0>"}, {"f(a(b)c)d", "%b()", "%q"},
		{"THE (q) fox", "%f[%a]%a+", "%%"}, {"aaa", "a-b?", "%3d%+5i%#o"}, {" 0x1F ", "[%]%-]", "%c"}, {"1e3", "[]a]", "%"}, {"-.5e-1", "[^%d]$", "%e %g"}, {"", "()", "%1"}, {"abc", "()b()", "%u%E%G%X"}, {"a.b", ".", "%%%s"}, {"x", "[a", "%99d"},
		{"ab", "(a)(b)%1", "%.3s"}, {"inf", "%", "%y"}, {"nan", "(()", "%.20f"}, {"\xe9é", "[\x80-\xff]+", "%s"}, {"a\nb\r", "%c", "\"%q\""}, {"10", "[%a-z]", "% d"}, {"0b1", "%x*", "%05.1f"}, {"ff", "[a-]", "%010s"},
		{"8", "8", "%#o"}, {"0", "0", "%.0d%+.0d"}, {"0", "0", "%       d"}, {"0", "()%1", "%1"}, {"0x1.8p1", "x", "%d"}, {"0xp1", "", "%#x"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	child := exec.CommandContext(f.Context(), stock, "-e", stringAnswers+` for line in io.lines() do io.write(answer(line), "\n") io.flush() end`)
	in, err := child.StdinPipe()
	if err != nil {
		f.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := child.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		in.Close()
		_ = child.Wait()
	})
	answers := bufio.NewReader(out)
	g := open(f, map[string]string{"activities/a.lua": stringAnswers + `Activity.register("a", { timeout = 5 }, function(call) return answer(call.line) end)`})
	f.Fuzz(func(t *testing.T, s, p, r string) {
		if len(s) > 20 || len(p) > 16 || len(r) > 16 || strings.ContainsRune(s+p+r, 0) {
			return // it would take for ever, or C would see the end of a text
		}
		if odd.MatchString(s) || ending.MatchString(r) {
			return
		}
		line := fmt.Sprintf("%x %x %x", s, p, r)
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		want, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		v, err := call(g, "a", plan.Invocation{Call: map[string]any{"line": line}})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := v.Value.(string); got != strings.TrimSuffix(want, "\n") {
			t.Fatalf("%q, %q, %q (-stock +here):\n%s", s, p, r, cmp.Diff(strings.Split(strings.TrimSuffix(want, "\n"), ";"), strings.Split(got, ";")))
		}
	})
}

// FuzzSettings holds that whatever obelus.lua returns, it is refused with a place
// and a reason, or gives settings that can be used, the same ones each time.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `nil`, `3`, `"x"`, `{ 1 }`, `{ paralel = 4 }`, `{ parallel = 4, timeout = "5s", drain = 0, ticks = 2, db = "x.db" }`, `{ parallel = 0 }`, `{ parallel = 1.5 }`, `{ parallel = 1e300 }`,
		`{ timeout = 0 }`, `{ timeout = -1 }`, `{ timeout = "1h1h" }`, `{ timeout = 1e300 }`, `{ drain = "no" }`, `{ synchronous = "FULL" }`, `{ synchronous = "off" }`, `{ db = "" }`, `{ db = {} }`,
		`{ limits = { memory = "512MB", instructions = 1e10, result = "16MB", string = "16MB", source = "256KB", pattern = "64KB", depth = 128 } }`,
		`{ limits = { depth = 0, memory = "-1KB", result = "1e9GB", pattern = 1/0, string = 0/0 } }`, `{ limits = { 1 } }`, `{ limits = { memry = 1 } }`,
		`{ allow = true }`, `{ allow = { net = { "example.com", "*.org:80", "::1" }, read = true, write = { "out" }, env = { "HOME" } } }`, `{ allow = { net = { 3 } } }`, `{ allow = { ned = true } }`,
		`{ approve = "always" }`, `{ approve = { "pay", "scopes" } }`, `{ approve = "" }`, `{ approve = { {} } }`, `{ serve = { runs = 64, queue = 256, body = "8MB", timeout = "1h", resume = true } }`,
		`{ serve = { runs = -1, queue = 0, body = "x", resume = 1 } }`,
		`{ model = { url = "http://127.0.0.1:1/v1", model = "x", headers = { a = "b", c = { env = "D" } }, price = { input = 1 }, repairs = 0 }, budget = { cost = 0.5 } }`,
		`{ serve = { hooks = { h = { plan = "plans/a.lua", verify = "slack", secret = "S", encoding = "hex" } }, on = { done = "plans/a.lua" }, otlp = "http://127.0.0.1:1" } }`,
		`{ serve = { schedules = { s = { plan = "plans/a.lua", cron = "@daily", input = {} } }, tokens = { t = { env = "T", may = "run" } } }, keep = { done = "3d" }, logs = { keep = 0 } }`, `setmetatable({}, { __index = function() error("no") end })`, `{ [print] = print }`, `function() end`, `error("no")`, `_G`, `...`,
	} {
		f.Add(text)
	}
	pointers := regexp.MustCompile(`0x[0-9a-f]+`)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "isolate") {
			return // it would start processes
		}
		source := "return " + text
		load := func() (string, error) {
			h, err := Open(Config{FS: project(map[string]string{"obelus.lua": source})})
			if err != nil {
				return "", err
			}
			defer h.Close()
			s := h.Generation().Settings()
			if s.Parallel < 0 || s.Ticks < 0 || s.Timeout < 0 || s.Synchronous != "" && s.Synchronous != "full" && s.Synchronous != "normal" {
				t.Fatalf("settings that can't be: %+v", s)
			}
			request := &plan.Request{Output: store.Some("†input")}
			outcome, err := s.Runner(memory.New(), h.Generation().Registry()).Run(t.Context(), engine.Start{Context: "c", Request: request, Input: store.Some("x"), Approve: plan.Policy{Never: true}}) // its tools are of no project
			if err != nil || outcome.Status != journal.RunDone {
				t.Fatalf("a run with them: %+v, %v", outcome, err)
			}
			return pointers.ReplaceAllString(fmt.Sprintf("%+v", s), "0x"), nil
		}
		began := time.Now()
		got, err := load()
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("it took %s to read them", took)
		}
		if err != nil {
			refusal(t, err, "obelus.lua", source)
			return
		}
		if again, err := load(); err != nil || again != got {
			t.Fatalf("it gives\n%s\nand then %v\n%s", got, err, again)
		}
	})
}
