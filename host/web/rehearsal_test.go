package web

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// world is what functions of plans act on: a server, and a folder.
type world struct {
	t        *testing.T
	dir      string
	requests atomic.Int64
}

// ServeHTTP counts requests of acts. It is the model's server too, which answers nothing.
func (w *world) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/act" {
		w.requests.Add(1)
		return
	}
	answer.WriteHeader(http.StatusBadRequest)
}

// state returns what the world has seen so far.
func (w *world) state() string {
	w.t.Helper()
	text := fmt.Sprintf("%d requests;", w.requests.Load())
	err := fs.WalkDir(os.DirFS(w.dir), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		content, _ := os.ReadFile(filepath.Join(w.dir, name)) // nothing of a folder
		text += fmt.Sprintf(" %s %q", name, content)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// acts are the ways in which a script can act on the world outside. N is of the tick, and differs
// between two runs.
var acts = map[string]string{
	"write":  `fs.write("out/w" .. tostring(n), "x")`,
	"append": `fs.append("out/log", "x")`,
	"mkdir":  `fs.mkdir("out/d" .. tostring(n))`,
	"remove": `fs.remove("out/gone" .. tostring(n))`,
	"get":    `http.get(url)`,
	"post":   `http.post(url, { body = "x" })`,
	"put":    `http.request{ method = "PUT", url = url, body = "x" }`,
}

// TestPlanner_RehearsalDoesNothing holds that what a function of a plan does to the world as its plan
// is run is not done by a replay, a prompt or a check, which ask it again.
func TestPlanner_RehearsalDoesNothing(t *testing.T) {
	for name, act := range acts {
		w := &world{t: t}
		server := httptest.NewServer(w)
		defer server.Close()
		planner := fmt.Sprintf(`return function(context)
			local fs, http, n, url = require "fs", require "http", count:Next(), %q
			local done, why = %s
			if not done then require("log").warn(tostring(why)) end
			if not context.state then return { calls = { { _tool = "one", _outputPath = "†state.a" }, { _tool = "asks", _after = "†state.a", _outputPath = "†state.b" } } } end
			return { output = context.state.a }
		end`, server.URL+"/act", act)
		s := serve(t, map[string]string{
			"obelus.lua":          fmt.Sprintf(`return { allow = { net = {%q}, write = {"out"}, read = {"out"} }, model = "m", models = { m = { provider = "ollama", model = "x", url = %q } } }`, strings.TrimPrefix(server.URL, "http://"), server.URL),
			"activities/one.lua":  `Activity.register("one", function() return 1 end) Tool.register("asks", { _output = { const = { type = "integer" } } })`,
			"plans/act.lua":       planner,
			"plans/delegates.lua": `return { { _tool = "d", _delegate = "plans/act.lua", _outputPath = "†state.c" } }`,
			"out/log":             "", "out/gone1": "", "out/gone2": "", "out/gone3": "", "out/gone4": "", "out/gone5": "", "out/gone6": "",
		}, map[string]any{"count": &counts{}}, nil)
		w.dir = filepath.Join(s.dir, "out")
		before := w.state()
		s.ask("POST", "/v1/runs", `{"plan":"plans/act.lua","context":"a","wait":true}`)
		s.ask("POST", "/v1/contexts/a/resume", `{"result":{"1.2":2},"wait":true}`)
		after := w.state()
		if before == after {
			t.Errorf("%s: the run did nothing: %s", name, after)
		}
		for _, request := range [][3]string{
			{"POST", "/v1/contexts/a/replay", `{}`},
			{"GET", "/v1/contexts/a/prompt?call=1.2", ""},
			{"GET", "/v1/contexts/a/prompt?tick=1", ""},
			{"POST", "/v1/check", `{"plan":"plans/act.lua"}`},
			{"POST", "/v1/check", `{"plan":"plans/delegates.lua","input":{}}`},
			{"GET", "/v1/plans/act.lua", ""},
		} {
			status, text := s.ask(request[0], request[1], request[2])
			if now := w.state(); now != after {
				t.Errorf("%s: %s: %d %s: the world is %s, not %s", name, request, status, text, now, after)
				after = now
			}
		}
	}
}

// counts counts up.
type counts struct{ n atomic.Int64 }

// Next returns the next number.
func (c *counts) Next() int64 { return c.n.Add(1) }
