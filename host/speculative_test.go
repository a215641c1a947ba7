package host

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"obelus/engine/plan"
	"obelus/luastd"
)

// beyond are the functions that reach beyond a script's memory, each as a script would
// call it.
var beyond = map[string]string{
	"print":        `print("seen")`,
	"io.write":     `io.write("se", "en")`,
	"io.stdout":    `io.stdout:write("seen")`,
	"io.stderr":    `io.stderr:write("seen\n")`,
	"log.debug":    `require("log").debug("seen")`,
	"log.error":    `require("log").error("seen", {n = 1})`,
	"log.info":     `require("log").info("seen")`,
	"log.warn":     `require("log").warn("seen")`,
	"fs.append":    `require("fs").append("seen.txt", "x")`,
	"fs.exists":    `require("fs").exists("seen.txt")`,
	"fs.list":      `require("fs").list(".")`,
	"fs.mkdir":     `require("fs").mkdir("seen")`,
	"fs.read":      `require("fs").read("there.txt")`,
	"fs.remove":    `require("fs").remove("there.txt")`,
	"fs.stat":      `require("fs").stat("there.txt")`,
	"fs.write":     `require("fs").write("seen.txt", "x")`,
	"http.get":     `require("http").get("http://127.0.0.1:1/")`,
	"http.post":    `require("http").post("http://127.0.0.1:1/", {body = "x"})`,
	"http.request": `require("http").request({url = "http://127.0.0.1:1/"})`,
	"model.ask":    `require("model").ask({prompt = "x"})`,
	"time.sleep":   `require("time").sleep(0.000001)`,
}

// within are the modules all of whose functions only compute, or look at what the
// process holds.
var within = []string{"base64", "csv", "env", "hash", "json", "random", "re", "str", "template", "url", "uuid", "yaml",
	"time.format", "time.now", "time.parse"}

// ownClock is a clock of the program's.
type ownClock struct{ luastd.SystemClock }

// openAhead opens a project of one activity and has its calls run ahead.
func openAhead(t *testing.T, c Config, top, body string) plan.Speculative {
	t.Helper()
	c.FS = project(map[string]string{"activities/a.lua": top + ` Activity.register("a", function(call) ` + body + ` end)`})
	h, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := h.Generation().Registry().Activities["a"].Activity.(plan.Speculative)
	return a // nil if it is none
}

func runAhead(a plan.Speculative) (plan.Result, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return a.Speculate(ctx, plan.Invocation{Call: map[string]any{"n": "1"}, Key: "c/1.1"})
}

// TestSpeculative_LeavesNoTrace holds that a speculated call gives up before it has an effect
// outside its memory, in whatever way the script reaches the function.
func TestSpeculative_LeavesNoTrace(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "there.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	every := luastd.Grant{All: true}
	for name, statement := range beyond {
		statement = strings.ReplaceAll(statement, "http://127.0.0.1:1", server.URL)
		for _, way := range []string{"%s", "pcall(function() %s end)", "coroutine.wrap(function() %s end)()", "xpcall(function() %s end, function() %[1]s end)",
			"local t = setmetatable({}, {__index = function() %s end}) local _ = t.x",
			"local e = setmetatable({}, {__tostring = function() %s return 'e' end}) if true then error(e) end",
			"local e = setmetatable({}, {__tostring = function() %s return 'e' end}) if true then return nil, e end",
			"local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co) %s"} {
			var printed, logged strings.Builder
			a := openAhead(t, Config{
				Stderr: &printed, Log: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
				Grants: &luastd.Grants{Root: root, Read: every, Write: every, Net: every},
			}, "", fmt.Sprintf(way, statement)+" return 1")
			logged.Reset() // what was loaded
			if res, ran, err := runAhead(a); ran || err != nil {
				t.Errorf("%s ran ahead by %s: %v, %v", name, way, res, err)
			}
			if printed.Len()+logged.Len() > 0 {
				t.Errorf("%s was seen by %s: %q, %q", name, way, printed.String(), logged.String())
			}
			if files, err := os.ReadDir(root); err != nil || len(files) != 1 || files[0].Name() != "there.txt" || requests.Load() > 0 {
				t.Errorf("%s by %s: the folder holds %v, and %d requests were made, %v", name, way, files, requests.Load(), err)
			}
			if res, err := a.Run(t.Context(), plan.Invocation{Key: "c/1.1"}); err != nil && !strings.Contains(way, "'e'") || res.Pure {
				t.Errorf("%s by %s: %v, %v", name, way, res, err)
			}
			if made := requests.Swap(0) > 0; made != strings.HasPrefix(name, "http") {
				t.Errorf("%s by %s: whether it made a request: %v", name, way, made)
			}
			_ = os.WriteFile(filepath.Join(root, "there.txt"), nil, 0o666)
			_ = os.Remove(filepath.Join(root, "seen"))
			_ = os.Remove(filepath.Join(root, "seen.txt"))
		}
	}
}

// TestSpeculative_FunctionsReach holds, for every function of every module, whether a speculated
// call gives up before it.
func TestSpeculative_FunctionsReach(t *testing.T) {
	for _, m := range luastd.Modules {
		for _, f := range m.Funcs {
			name := m.Name + "." + f.Name
			if _, ok := beyond[name]; ok == (slices.Contains(within, m.Name) || slices.Contains(within, name)) {
				t.Errorf("%s is neither among what reaches beyond memory nor what does not, or both", name)
			}
		}
	}
}

func TestSpeculative_Computes(t *testing.T) {
	for _, body := range []string{
		`return call.n .. "x"`,
		`return require("json").decode('"1x"')`,
		`return (require("str").split("1x y", " "))[1]`,
		`require("random").int(1, 2) os.time() require("time").now() return "1x"`,
		`return coroutine.wrap(function() coroutine.yield("1x") end)()`,
	} {
		a := openAhead(t, Config{}, "", body)
		res, ran, err := runAhead(a)
		if !ran || err != nil || res.Value != "1x" {
			t.Errorf("%s: %v, %v, %v", body, res, ran, err)
		}
		if res, err := a.Run(t.Context(), plan.Invocation{Call: map[string]any{"n": "1"}, Key: "c/1.1"}); err != nil || res.Value != "1x" || !res.Pure {
			t.Errorf("%s: %v, %v", body, res, err)
		}
	}
	for body, want := range map[string]string{`return nil, "no"`: "no", `error("no")`: "no", `local x = nil; return x.y`: "index"} {
		if _, ran, err := runAhead(openAhead(t, Config{}, "", body)); !ran || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", body, ran, err)
		}
	}
}

// TestSpeculative_NotAllowed holds that no call is speculated on where objects or a clock could
// have effects that the host does not see, or where states are reused.
func TestSpeculative_NotAllowed(t *testing.T) {
	for name, c := range map[string]Config{"objects": {Objects: map[string]any{"o": 1}}, "a clock": {Clock: ownClock{}}} {
		if openAhead(t, c, "", "return 1") != nil {
			t.Errorf("it may run ahead beside %s of the program's", name)
		}
	}
	for name, files := range map[string]map[string]string{
		"whose state is used again": {"activities/a.lua": `Activity.register("a", {reuse = true}, function() return 1 end)`},
		"in a process of its own":   {"activities/a.lua": `Activity.register("a", function() return 1 end)`, "obelus.lua": `return { isolate = "process" }`},
	} {
		if a, ok := open(t, files).Registry().Activities["a"].Activity.(plan.Speculative); ok {
			t.Errorf("%v may run ahead, %s", a, name)
		}
	}
	if _, ran, _ := runAhead(openAhead(t, Config{}, `print("loaded")`, "return 1")); ran {
		t.Error("it ran ahead, and its script prints")
	}
}

// TestSpeculative_LongWork holds that a speculated call gives up before long work that can't be
// interrupted: commits would wait for it.
func TestSpeculative_LongWork(t *testing.T) {
	for _, body := range []string{
		`return #("x"):rep(1e6)`,
		`local s = ("x"):rep(6e4) for _ = 1, 5 do s = s .. s end return #s`,
		`return #require("random").bytes(1e6)`,
		`local t = {} for i = 1, 60 do t[i] = ("x"):rep(6e4) end return #require("template").render(("{{a}}"):rep(2e4), {a = 1})`,
	} {
		if res, ran, err := runAhead(openAhead(t, Config{}, "", body)); ran {
			t.Errorf("%s ran ahead: %v, %v", body, res, err)
		}
	}
}

// TestSpeculative_Late holds that a call has not run whose speculation ends after its time.
func TestSpeculative_Late(t *testing.T) {
	a := openAhead(t, Config{}, "", `while true do end`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if res, ran, err := a.Speculate(ctx, plan.Invocation{Key: "c/1.1"}); ran || err != nil {
		t.Errorf("%v, %v", res, err)
	}
}
