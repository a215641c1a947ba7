package host

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/luastd"
	"obelus/store"
)

// granted opens a project on disk with the files data/x and more/y.
func granted(t *testing.T, files map[string]string) *Generation {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"data/x": "x", "more/y": "y"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	h, err := Open(Config{FS: project(files), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h.Generation()
}

// TestAllow_NarrowedCallSeesNothingKept holds that a call which a tool narrows finds nothing in a
// state that the option reuse keeps, and leaves nothing there.
func TestAllow_NarrowedCallSeesNothingKept(t *testing.T) {
	g := granted(t, map[string]string{
		"obelus.lua": `return { allow = { read = { "data", "more" } } }`,
		"activities/a.lua": `
			local fs, kept = require("fs"), nil
			Activity.register("a", { reuse = true }, function(call)
				local found = kept
				kept = call._allow and "narrow" or function() return fs.read("more/y") end
				return { found and (found == "narrow" and found or found()) or "nothing", (fs.read("more/y")) }
			end)`,
	})
	allow := map[string]any{"read": []any{"data"}}
	narrow := plan.Invocation{Call: map[string]any{"_tool": "b", "_allow": allow}, Allows: []any{allow}}
	for i, test := range []struct {
		in   plan.Invocation
		want string
	}{
		{plan.Invocation{}, `["nothing","y"]`}, {narrow, `["nothing"]`}, {plan.Invocation{}, `["y","y"]`}, {narrow, `["nothing"]`},
	} {
		if got, err := runA(g, test.in); err != nil || got != test.want {
			t.Errorf("call %d: got %s %v, want %s", i+1, got, err, test.want)
		}
	}
}

// TestAllow_StatesAreGivenBack holds that a state has the permissions of the call that runs in it,
// whatever ran in it before.
func TestAllow_StatesAreGivenBack(t *testing.T) {
	g := granted(t, map[string]string{
		"obelus.lua": `return { allow = { read = { "data", "more" } } }`,
		"activities/a.lua": `
			local fs = require("fs")
			local function both() return { fs.read("data/x") or "no", fs.read("more/y") or "no" } end
			Activity.register("a", both)
			Activity.register("asks", { allow = { read = { "more" } } }, both)
			Activity.register("none", { allow = false }, both)`,
	})
	for range 3 {
		for name, want := range map[string]string{"a": `["x","y"]`, "asks": `["no","y"]`, "none": `["no","no"]`} {
			if got, err := runNamed(g, name, plan.Invocation{}); err != nil || got != want {
				t.Errorf("%s: got %s %v, want %s", name, got, err, want)
			}
		}
	}
}

// TestAllow_UnreadableNarrowingFails holds that a call with an _allow that can't be read, which
// only a log could have, does not run.
func TestAllow_UnreadableNarrowingFails(t *testing.T) {
	for _, settings := range []string{`{}`, `{ isolate = "process" }`} {
		g := granted(t, map[string]string{"obelus.lua": "return " + settings, "activities/a.lua": `Activity.register("a", function() return 1 end)`})
		_, err := runA(g, plan.Invocation{Allows: []any{map[string]any{"all": true}}})
		if err == nil || !strings.Contains(err.Error(), `activity a: unknown permission _allow.all`) {
			t.Errorf("%s: got %v", settings, err)
		}
	}
}

// TestAllow_ModelIsNamed holds that allow = true has no models, of a project or of an activity, and
// that the refusal says so.
func TestAllow_ModelIsNamed(t *testing.T) {
	for _, isolate := range []string{"false", `"process"`} {
		g := granted(t, map[string]string{
			"obelus.lua": `return { isolate = ` + isolate + `, allow = true, model = "m", models = { m = { url = "http://127.0.0.1:1/v1", model = "m" } } }`,
			"activities/a.lua": `
				local function ask() return select(2, require("model").ask { prompt = "x" }) end
				Activity.register("a", ask)
				Activity.register("asks", { allow = { model = { "m" } } }, ask)`,
		})
		for name, want := range map[string]string{
			"a":    `asking the model "m" is not allowed: run with --allow-model=m or set allow.model in obelus.lua (allow = true is all but model, which must be named)`,
			"asks": `asking the model "m" is not allowed: the project does not grant it: run with --allow-model=m or set allow.model in obelus.lua (allow = true is all but model, which must be named)`,
		} {
			if got, err := runNamed(g, name, plan.Invocation{}); err != nil || got != string(store.EncodeJSON(want)) {
				t.Errorf("isolate = %s: %s: got %s %v", isolate, name, got, err)
			}
		}
		g = granted(t, map[string]string{
			"obelus.lua":       `return { isolate = ` + isolate + `, allow = { model = { "m" } }, model = "m", models = { m = { url = "http://127.0.0.1:1/v1", model = "m" } } }`,
			"activities/a.lua": `Activity.register("a", { allow = true }, function() return select(2, require("model").ask { prompt = "x" }) end)`,
		})
		if got, err := runA(g, plan.Invocation{}); err != nil || !strings.Contains(got, `activity \"a\" does not ask for it: add model = { \"m\" } to the allow of its options in activities/a.lua:1`) {
			t.Errorf("isolate = %s: got %s %v", isolate, got, err)
		}
	}
}

// TestAllow_WorkerIsNotTrusted holds that the process which answers questions to models looks at
// the permissions of the call, whatever its worker says.
func TestAllow_WorkerIsNotTrusted(t *testing.T) {
	g := granted(t, map[string]string{"obelus.lua": `return { allow = { model = { "m" } }, models = { m = { url = "http://127.0.0.1:1/v1", model = "m" } } }`})
	grants := g.narrowed(luastd.Bound{By: `activity "a"`, Option: "allow"})
	if _, err := g.askFor(grants, nil)(t.Context(), luastd.ModelQuestion{Model: "m"}); err == nil || !strings.Contains(err.Error(), "does not ask for it") {
		t.Errorf("got %v", err)
	}
}

// TestReload_AskedIsKept holds that a watch does not give up grants = "asked".
func TestReload_AskedIsKept(t *testing.T) {
	f := watched(t, nil, map[string]string{
		"obelus.lua":       `return { grants = "asked", allow = { read = { "data" } } }`,
		"activities/a.lua": `Activity.register("a", function() local fs = require "fs" return { (fs.read("data/x")) } end)`,
		"data/x":           "x",
	})
	answers := func(want string) {
		t.Helper()
		if got := f.answer(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	answers(`{}`)
	f.replace("obelus.lua", `return { allow = { read = { "data" } } }`)
	f.expect("2 +[] ~[obelus.lua] -[] pending [allow]")
	answers(`{}`)
	if r := f.host.Reload(); r.Err != nil || r.Withheld {
		t.Fatal(r.Err, r.Withheld)
	}
	answers(`["x"]`)
	f.replace("obelus.lua", `return { grants = "asked", allow = { read = { "data" } } }`)
	f.expect("4 +[] ~[obelus.lua] -[]")
	answers(`{}`)
}

// runNamed is runA for an activity of another name.
func runNamed(g *Generation, name string, in plan.Invocation) (string, error) {
	r, err := call(g, name, in)
	return string(store.EncodeJSON(r.Value)), err
}

// TestAllow_RedirectLeadsOut holds that a redirect leads no call to a host that its activity does not
// ask for, though the project grants it, and that connections of a call with more do not help.
func TestAllow_RedirectLeadsOut(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") }))
	defer inner.Close()
	outer := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusFound))
	defer outer.Close()
	defer luastd.CloseIdleConnections()
	to, in := strings.TrimPrefix(outer.URL, "http://"), strings.TrimPrefix(inner.URL, "http://")
	for _, isolate := range []string{"false", `"process"`} {
		g := granted(t, map[string]string{
			"obelus.lua": fmt.Sprintf(`return { isolate = %s, allow = { net = { %q, %q } } }`, isolate, to, in),
			"activities/a.lua": fmt.Sprintf(`
				local function get() local answer, err = require("http").get(%q) return answer and answer.body or err end
				Activity.register("wide", get)
				Activity.register("narrow", { allow = { net = { %q } } }, get)`, outer.URL, to),
		})
		for range 2 {
			if got, err := runNamed(g, "wide", plan.Invocation{}); err != nil || got != `"inside"` {
				t.Errorf("isolate = %s: got %s %v", isolate, got, err)
			}
			want := fmt.Sprintf(`connecting to %s is not allowed: activity \"narrow\" does not ask for it: add net = { \"%s\" } to the allow of its options in activities/a.lua:4`, in, in)
			if got, err := runNamed(g, "narrow", plan.Invocation{}); err != nil || !strings.Contains(got, want) {
				t.Errorf("isolate = %s: got %s %v, want %s", isolate, got, err, want)
			}
		}
	}
}
