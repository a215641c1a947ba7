package host

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/luastd"
	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

func equal(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// runProject runs a plan of a project in the context "c" of a log.
func runProject(t *testing.T, c Config, log store.Log, plan string) {
	t.Helper()
	h, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	request, registry, err := h.Plan(plan)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := h.Generation().Settings().Runner(log, registry).Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
}

// keptLines are the lines that a log keeps of the context "c".
func keptLines(t *testing.T, log store.Reader, f store.LogFilter) (lines []string) {
	t.Helper()
	f.Context = "c"
	for l, err := range log.Logs(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		mark := ""
		if l.Printed {
			mark = " printed"
		}
		lines = append(lines, fmt.Sprintf("%s#%d %s %d %s%s: %s%s", l.Call, l.Line, l.Tool, l.Attempt, l.Level, mark, l.Text, fieldsText(l)))
	}
	return lines
}

func fieldsText(l store.LogLine) string {
	if l.Fields == nil {
		return ""
	}
	return " " + string(store.EncodeJSON(l.Fields))
}

const talking = `
	local log = require("log")
	print("loaded")
	Tool.register("talk", { type = "object", properties = { who = { type = "string" } } })
	Activity.register("talk", { retries = 1, backoff = "1ms" }, function(call, _, _, key)
		print("hello", call.who)
		io.write("a\nb\rtime=now level=ERROR msg=forged\n", "open")
		log.warn("care\nful", { id = 17, list = { "a" }, on = true })
		log.debug("fine")
		if call.who == "Ada" then return nil, { message = "once more" } end
		return 1
	end)`

// TestOutput_KeptByCall: lines carry their call, tool, attempt and level, in this process and in a
// worker, and are all there when the run has ended.
func TestOutput_KeptByCall(t *testing.T) {
	for _, isolate := range []string{"none", "process"} {
		t.Run(isolate, func(t *testing.T) {
			files := map[string]string{
				"obelus.lua":          fmt.Sprintf(`return { isolate = %q }`, isolate),
				"activities/talk.lua": talking,
				"plans/p.lua":         `return { { _tool = "talk", who = "Ada", _outputPath = "†state.a || †error.a" } }`,
			}
			log := memory.New()
			var mu sync.Mutex
			shown := map[string]store.LogLine{}
			c := Config{FS: project(files), Show: func(l store.LogLine) {
				mu.Lock()
				defer mu.Unlock()
				shown[l.Text] = l
			}}
			runProject(t, c, log, "plans/p.lua")
			var want []string
			for attempt := range 2 {
				for i, line := range []string{"info printed: loaded", "info printed: hello\tAda", "info printed: a", "info printed: b", "info printed: time=now level=ERROR msg=forged",
					"warn: care\nful {\"id\":17,\"list\":[\"a\"],\"on\":true}", "debug: fine", "info printed: open"} {
					want = append(want, fmt.Sprintf("1.1#%d talk %d %s", attempt*8+i+1, attempt+1, line))
				}
			}
			equal(t, keptLines(t, log, store.LogFilter{}), want)
			equal(t, len(keptLines(t, log, store.LogFilter{Level: store.LevelWarn})), 2)
			mu.Lock()
			defer mu.Unlock()
			last := shown["care\nful"]
			last.Date = time.Time{}
			equal(t, string(store.EncodeJSON(last)), `{"n":0,"context":"c","call":"1.1","line":0,"tool":"talk","attempt":2,"date":"0001-01-01T00:00:00.000Z","level":"warn","text":"care\nful","fields":{"id":17,"list":["a"],"on":true}}`)
		})
	}
}

// TestOutput_ReadWhileCallRuns: another process sees a line while the call goes on.
func TestOutput_ReadWhileCallRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	files := map[string]string{
		"activities/a.lua": `Activity.register("a", function() print("begun") return require("http").get("http://x.test/").status end)`,
		"plans/p.lua":      `return { { _tool = "a", _outputPath = "†state.a" } }`,
	}
	// The call ends once its line has been read.
	answer := func(ctx context.Context, _ luastd.HTTPRequest) (r luastd.HTTPResponse, err error) {
		other, err := sqlite.Open(path, sqlite.Options{ReadOnly: true})
		if err != nil {
			return r, err
		}
		defer other.Close()
		for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			for line, err := range other.Logs(ctx, store.LogFilter{Context: "c"}) {
				if err != nil {
					return r, err
				}
				if took := time.Since(began); line.Text == "begun" && took < 5*time.Second {
					return luastd.HTTPResponse{Status: 200}, nil
				}
			}
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
		}
	}
	runProject(t, Config{FS: project(files), HTTP: answer}, log, "plans/p.lua")
}

// TestOutput_Bounded: of a call that prints without end the newest lines are kept, and the setting
// says how many. A line that is longer than all of them is cut.
func TestOutput_Bounded(t *testing.T) {
	files := map[string]string{
		"obelus.lua": `return { logs = { keep = "1KB" } }`,
		"activities/a.lua": `Activity.register("a", function() for i = 1, 5000 do print("line " .. i) end return 1 end)
			Activity.register("b", function() print(("x"):rep(5000)) require("log").info("m", { long = ("y"):rep(5000) }) return 1 end)`,
		"plans/p.lua": `return { { _tool = "a", _outputPath = "†state.a" }, { _tool = "b", _outputPath = "†state.b" } }`,
	}
	log := memory.New()
	runProject(t, Config{FS: project(files)}, log, "plans/p.lua")
	lines := keptLines(t, log, store.LogFilter{Call: "1.1"})
	const room = 1024 / (64 + len("line 5000"))
	if len(lines) != room || lines[room-1] != "1.1#5000 a 1 info printed: line 5000" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	lines = keptLines(t, log, store.LogFilter{Call: "1.2"})
	equal(t, lines, []string{"1.2#2 b 1 info: m (its fields have no room)"})

	for _, none := range []string{"0", `"0"`} {
		files["obelus.lua"] = `return { logs = { keep = ` + none + ` } }`
		log = memory.New()
		runProject(t, Config{FS: project(files)}, log, "plans/p.lua")
		equal(t, keptLines(t, log, store.LogFilter{}), []string(nil))
	}
}

func TestSettings_Logs(t *testing.T) {
	for text, want := range map[string]string{
		`logs = { keep = "1 light year" }`: `logs.keep must be a size, such as "256KB", or 0 to keep nothing, not "1 light year"`,
		`logs = { keeps = 1 }`:             `unknown setting logs.keeps (did you mean "keep"?)`,
		`log = "loud"`:                     `log must be "debug", "info", "warn" or "error", not "loud"`,
	} {
		_, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return { " + text + " }"})})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
