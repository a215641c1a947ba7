package cmd

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServe_Tokens holds that the command takes tokens from its environment: it lets them in, takes
// more of them on SIGHUP alone, and warns of one whose variable is not set.
func TestServe_Tokens(t *testing.T) {
	t.Setenv("CI_TOKEN", "c1-secret\n")
	t.Setenv("OPS_TOKEN", "0ps-secret")
	settings := func(tokens string) string { return "return { serve = { tokens = { " + tokens + " } } }" }
	const ci, ops = `ci = { env = "CI_TOKEN", may = "read" }`, `, ops = { env = "OPS_TOKEN", may = "decide" }`
	dir := project(t, map[string]string{"obelus.lua": settings(ci), "plans/echo.json": `{"calls":[],"output":"†input"}`})
	p, url := serving(t, dir)
	ask := func(method, path, token string, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(`{"plan":"plans/echo.json"}`))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s %s with %q: %d, not %d", method, path, token, response.StatusCode, want)
		}
	}
	ask("GET", "/v1/contexts", "", 401)
	ask("GET", "/v1/contexts", "c1-secret", 200)
	ask("POST", "/v1/runs", "c1-secret", 403)
	ask("GET", "/docs", "", 200)
	write(t, filepath.Join(dir, "obelus.lua"), settings(ci+ops))
	p.says("grants more than before")
	ask("POST", "/v1/runs", "0ps-secret", 401)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.says("generation 3")
	ask("POST", "/v1/runs", "0ps-secret", 202)
	write(t, filepath.Join(dir, "obelus.lua"), settings(ci+ops+`, late = { env = "LATE_TOKEN", may = "run" }`))
	p.says("grants more than before")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.says("the environment variable LATE_TOKEN is not set")
	if status := p.ends(syscall.SIGTERM); status != exitDone {
		t.Errorf("exit status %d", status)
	}
	if said := p.said.String(); strings.Contains(said, "c1-secret") || strings.Contains(said, "0ps-secret") {
		t.Errorf("a token is told:\n%s", said)
	}
}
