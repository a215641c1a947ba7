package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"obelus/engine/plan"
)

// TestReload_WiderPermissionsWait holds that a watch takes over what grants less at once, and
// what grants more only when the program asks for it.
func TestReload_WiderPermissionsWait(t *testing.T) {
	f := watched(t, nil, map[string]string{
		"obelus.lua":       `return { allow = { read = { "data", "more" } } }`,
		"activities/a.lua": `Activity.register("a", function() local fs = require "fs" return { (fs.read("data/x")), (fs.read("more/x")), (fs.read("secret")) } end)`,
		"data/x":           "x", "more/x": "y", "secret": "s",
	})
	answers := func(want string) {
		t.Helper()
		if got := f.answer(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	answers(`["x","y"]`)
	f.replace("obelus.lua", `return { allow = true }`)
	f.expect("2 +[] ~[obelus.lua] -[] pending [allow]")
	answers(`["x","y"]`)
	f.replace("obelus.lua", `return { allow = { read = { "data", "secret" }, env = { "HOME" } } }`)
	f.expect("3 +[] ~[obelus.lua] -[] pending [allow]")
	answers(`["x"]`)
	f.replace("obelus.lua", `return { allow = { read = { "data/x" } } }`)
	f.expect("4 +[] ~[obelus.lua] -[]")
	answers(`["x"]`)
	f.replace("obelus.lua", `return { allow = { read = { "data", "more" } } }`)
	f.expect("5 +[] ~[obelus.lua] -[] pending [allow]")
	answers(`["x"]`)
	f.replace("obelus.lua", `return { allow = { read = { "data/x" }, write = { "." } } }`)
	f.expect("6 +[] ~[obelus.lua] -[] pending [allow]")
	if r := f.host.Reload(); r.Err != nil {
		t.Fatal(r.Err)
	}
	for i, write := range []string{`{ ".", "lib" }`, `true`, `{ ".", "lib/made" }`} { // none names what "." does not cover
		f.replace("obelus.lua", `return { allow = { read = { "data/x" }, write = `+write+` } }`)
		f.expect(fmt.Sprintf("%d +[] ~[obelus.lua] -[] pending [allow]", 8+i))
		if got := f.host.Generation().Grants().Write; slices.ContainsFunc(got.List, func(e string) bool { return e != "." }) || got.All {
			t.Errorf("write is %+v", got)
		}
	}
	f.replace("obelus.lua", `return { allow = { read = { "data", "more" } } }`)
	f.expect("11 +[] ~[obelus.lua] -[] pending [allow]")
	if r := f.host.LastReload(); !r.Withheld {
		t.Error("it is not told that permissions were withheld")
	}
	if r := f.host.Reload(); r.Err != nil || len(r.Pending) > 0 || r.Withheld {
		t.Errorf("pending %v, %v", r.Pending, r.Err)
	}
	answers(`["x","y"]`)
}

// TestPermissions_ScriptsBehindLinks holds that what links of the places of scripts lead to is
// guarded: files and folders, also such as are empty or not there yet.
func TestPermissions_ScriptsBehindLinks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"obelus.lua":         `return { allow = { write = { "." } } }`,
		"activities/own.lua": `Activity.register("a", function(call) local ok, err = require("fs").write(call.file, "x") return err or "written" end)`,
		"shared/real.lua":    "",
		"deep/further/x.lua": "", "plain/x.lua": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"lib", "plans", "tests", "empty", "modules", "tested"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"activities/linked.lua": "../shared/real.lua", "activities/sub": "../empty", "lib/sub": "../modules", "plans/new.lua": "../data/new.lua",
		"tests/sub": "../tested", "plans/deep": "../deep", "deep/further/more": "../../furthest",
	} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	for _, folder := range []string{"data", "furthest"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "activities/own.lua"), filepath.Join(dir, "plain/hard.lua")); err != nil {
		t.Skip("no hard links here:", err)
	}
	h, err := Open(Config{FS: os.DirFS(dir), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"shared/real.lua": "holds the project's scripts", "empty/x.lua": "holds the project's scripts", "modules/x.lua": "holds the project's scripts",
		"data/new.lua": "holds the project's scripts", "tested/x.lua": "holds the project's scripts", "deep/x.lua": "holds the project's scripts",
		"furthest/x.lua": "holds the project's scripts", "plain/hard.lua": "has other names (hard links)",
		"data/other.lua": "written", "plain/x.lua": "written", "shared/other.lua": "written",
	} {
		got, err := runA(h.Generation(), plan.Invocation{Call: map[string]any{"file": file}})
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %s %v, want %s", file, got, err, want)
		}
	}
}

// TestWorker_MinimalEnvironment holds that a worker has of the environment what it needs and
// what its scripts are granted, and never a secret of the settings or the server's token.
func TestWorker_MinimalEnvironment(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc/self/environ here:", err)
	}
	for name, value := range map[string]string{"OBELUS_TOKEN": "t0", "MODEL_KEY": "k0", "HOOK_SECRET": "h0", "AWS_SECRET_ACCESS_KEY": "a0", "SHOWN": "s0", "HTTPS_PROXY": "p0", "TZ": "UTC"} {
		t.Setenv(name, value)
	}
	for allow, want := range map[string]string{
		`{ read = { "/proc/self" }, env = { "SHOWN" } }`:     "s0 UTC",
		`{ read = { "/proc/self" } }`:                        "UTC",
		`{ read = { "/proc/self" }, net = { "localhost" } }`: "p0 UTC",
		`{ read = { "/proc/self" }, env = true }`:            "a0 s0 p0 UTC",
	} {
		g := open(t, map[string]string{
			"obelus.lua": `return { isolate = "process", allow = ` + allow + `,
				models = { m = { url = "http://127.0.0.1:1/v1", model = "m", key = { env = "MODEL_KEY" } } },
				serve = { hooks = { h = { plan = "plans/h.lua", verify = "hmac-sha256", secret = "HOOK_SECRET" } } } }`,
			"activities/a.lua": `Activity.register("a", function() return assert(require("fs").read("/proc/self/environ")) end)`,
		})
		t.Cleanup(g.workers.Close)
		environ, err := runA(g, plan.Invocation{Attempt: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, value := range []string{"t0", "k0", "h0", "a0", "s0", "p0", "UTC"} {
			if strings.Contains(environ, "="+value) {
				got = append(got, value)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: the worker has %s, not %s", allow, text, want)
		}
	}
}

// TestReload_MoreTokensWait holds that a watch takes tokens away, and roles, and gives none.
func TestReload_MoreTokensWait(t *testing.T) {
	settings := func(tokens string) string { return "return { serve = { tokens = { " + tokens + " } } }" }
	f := watched(t, nil, map[string]string{"obelus.lua": settings("ci = { env = 'CI', may = 'run' }, ops = { env = 'OPS', may = 'decide' }")})
	has := func(want string) {
		t.Helper()
		if got := fmt.Sprint(f.host.Generation().Settings().Serve.Tokens); got != want {
			t.Errorf("the tokens are %s, not %s", got, want)
		}
	}
	has("[{ci CI run} {ops OPS decide}]")
	f.replace("obelus.lua", settings("ci = { env = 'CI', may = 'decide' }, late = { env = 'LATE', may = 'read' }"))
	f.expect("2 +[] ~[obelus.lua] -[] pending [serve.tokens]")
	has("[{ci CI run}]")
	f.replace("obelus.lua", settings("ci = { env = 'CI', may = 'read' }"))
	f.expect("3 +[] ~[obelus.lua] -[]")
	has("[{ci CI read}]")
	f.replace("obelus.lua", settings("ci = { env = 'HOME', may = 'read' }, late = { env = 'LATE', may = 'run' }"))
	f.expect("4 +[] ~[obelus.lua] -[] pending [serve.tokens]")
	has("[]")
	if r := f.host.Reload(); r.Err != nil || len(r.Pending) > 0 || r.Withheld {
		t.Errorf("pending %v, %v", r.Pending, r.Err)
	}
	has("[{ci HOME read} {late LATE run}]")
}

// TestPermissions_NamedToken holds that no permission gives a token of serve.tokens to a script.
func TestPermissions_NamedToken(t *testing.T) {
	t.Setenv("CI_TOKEN", "t0")
	for _, isolate := range []string{"none", "process"} {
		g := open(t, map[string]string{
			"obelus.lua":       `return { isolate = "` + isolate + `", allow = true, serve = { tokens = { ci = { env = "CI_TOKEN", may = "read" } } } }`,
			"activities/a.lua": `Activity.register("a", function() local v, err = require("env").get("CI_TOKEN", "none") return { v or "", err } end)`,
		})
		if g.workers != nil {
			t.Cleanup(g.workers.Close)
		}
		if got, err := runA(g, plan.Invocation{Attempt: 1}); err != nil || strings.Contains(got, "t0") || strings.Contains(got, "none") {
			t.Errorf("isolate %s: got %s %v", isolate, got, err)
		}
	}
}

// TestPermissions_ServerToken holds that no permission gives the server's token to a script.
func TestPermissions_ServerToken(t *testing.T) {
	t.Setenv("OBELUS_TOKEN", "t0")
	g := open(t, map[string]string{
		"obelus.lua":       `return { allow = true }`,
		"activities/a.lua": `Activity.register("a", function() local v, err = require("env").get("OBELUS_TOKEN", "none") return { v or "", err } end)`,
	})
	if got, err := runA(g, plan.Invocation{}); err != nil || !strings.Contains(got, "it is the server's own") || strings.Contains(got, "t0") {
		t.Errorf("got %s %v", got, err)
	}
	_, err := Open(Config{FS: project(map[string]string{"obelus.lua": `return { allow = { env = { "OBELUS_TOKEN" } } }`})})
	if err == nil || !strings.Contains(err.Error(), "obelus.lua:1: allow.env: OBELUS_TOKEN is the server's own token") {
		t.Errorf("got %v", err)
	}
}

// TestCheck_PermissionToWriteScripts holds that a grant by which scripts write scripts is
// warned of, at its line.
func TestCheck_PermissionToWriteScripts(t *testing.T) {
	dir := t.TempDir()
	h, err := Open(Config{Dir: dir, FS: project(map[string]string{"obelus.lua": "return {\n  allow = {\n    write = { \"out\", \"plans/made\", \".\" } } }"})})
	if err != nil {
		t.Fatal(err)
	}
	problems := h.Generation().Lint()
	if len(problems) != 1 || problems[0].Line != 3 || problems[0].Severity != plan.SeverityWarning || !strings.Contains(problems[0].Message, `"plans/made", in plans`) {
		t.Errorf("got %v", problems)
	}
}
