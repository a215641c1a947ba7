package web

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"obelus/host"
	"obelus/store"
)

// secrets are the texts of the tokens of withTokens, by their variables.
var secrets = map[string]string{"READ_TOKEN": "r3ad-me-0", "RUN_TOKEN": "run-me-00\n", "OPS_TOKEN": "dec1de-me"}

// withTokens returns the files of a project with a token of each role, and its own files.
func withTokens(files map[string]string) map[string]string {
	all := map[string]string{"obelus.lua": `return { drain = "100ms", serve = { tokens = {
		reader = { env = "READ_TOKEN", may = "read" }, ci = { env = "RUN_TOKEN", may = "run" }, ops = { env = "OPS_TOKEN", may = "decide" },
		gone = { env = "GONE_TOKEN", may = "decide" } } } }`}
	for name, text := range files {
		if name != "obelus.lua" {
			all[name] = text
		}
	}
	return all
}

func withSecrets(c *Config) { c.Secret = func(variable string) string { return secrets[variable] } }

// bearer returns the headers of a request with the token of a role.
func bearer(role host.Role) []string {
	variable := map[host.Role]string{host.MayRead: "READ_TOKEN", host.MayRun: "RUN_TOKEN", host.MayDecide: "OPS_TOKEN"}[role]
	if variable == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + strings.TrimSpace(secrets[variable])}
}

// TestTokens_EachRoute holds that each route wants the role of the table, and no other.
func TestTokens_EachRoute(t *testing.T) {
	s := serve(t, withTokens(work), nil, withSecrets)
	fill := strings.NewReplacer("{context}", "none", "{call}", "1.1", "{hook}", "none", "{file...}", "plans/none.lua", "{generation}", "0", "{path...}", "none.lua")
	for _, route := range s.server.operations {
		method, path, _ := strings.Cut(route.Route, " ")
		path = fill.Replace(path)
		for _, role := range []host.Role{host.NoRole, host.MayRead, host.MayRun, host.MayDecide} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, strings.NewReader("!"))
			if err != nil {
				t.Fatal(err)
			}
			if headers := bearer(role); headers != nil {
				r.Header.Set(headers[0], headers[1])
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			switch {
			case route.role() == host.NoRole && strings.Contains(path, "/hooks/"): // there is no such hook, so it is like any path
				if want := response.StatusCode == 401; want != (role == host.NoRole) {
					t.Errorf("%s with %s: %d", route.Route, role, response.StatusCode)
				}
			case route.role() == host.NoRole:
				if response.StatusCode != 200 {
					t.Errorf("%s with %s: %d", route.Route, role, response.StatusCode)
				}
			case role == host.NoRole && response.StatusCode != 401,
				role != host.NoRole && (response.StatusCode == 403) != (role < route.role()):
				t.Errorf("%s, which needs %s, with %s: %d", route.Route, route.role(), role, response.StatusCode)
			}
		}
		want := host.MayRead // unless the table has a reason
		if method != http.MethodGet {
			want = host.MayRun
		}
		if exceptions := []string{"GET /healthz", "POST /v1/hooks/{hook}", "POST /v1/check", "GET /openapi.json", "GET /docs", "GET /docs/style.css"}; route.role() < want && !slices.Contains(exceptions, route.Route) {
			t.Errorf("%s needs no more than %s", route.Route, route.role())
		}
	}
}

// TestTokens_RoleIsNamed holds that a refusal names the role that is needed, and the token by name.
func TestTokens_RoleIsNamed(t *testing.T) {
	s := serve(t, withTokens(work), nil, withSecrets)
	if text := s.refused("POST", "/v1/runs", `{"plan":"plans/echo.json"}`, 403, "role", bearer(host.MayRead)...); text != `POST /v1/runs needs a token with may = "run", and reader has "read"` {
		t.Error(text)
	}
	for _, given := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic r3ad-me-0", "Bearer r3ad-me-", "r3ad-me-0"} {
		s.refused("GET", "/v1/contexts", "", 401, "token", "Authorization", given)
	}
	s.refused("GET", "/v1/contexts", "", 401, "token")
}

// TestTokens_Decisions holds that a token that may run can't get around a person's decision, and
// that one that may decide is recorded by its name.
func TestTokens_Decisions(t *testing.T) {
	s := serve(t, withTokens(map[string]string{
		"activities/work.lua": work["activities/work.lua"], "plans/double.lua": work["plans/double.lua"],
		"plans/lazy.lua": `return { mode = "lazy", calls = {}, output = 1 }`,
	}), nil, withSecrets)
	run, decide := bearer(host.MayRun), bearer(host.MayDecide)
	for _, body := range []string{
		`{"plan":"plans/double.lua","approve":"never"}`, `{"plan":"plans/double.lua","approve":"double"}`, `{"plan":"plans/lazy.lua","mode":"eager"}`,
	} {
		s.refused("POST", "/v1/runs", body, 403, "role", run...)
		if status, text := s.ask("POST", "/v1/runs", body, decide...); status != 202 {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	for _, name := range []string{"a", "b"} {
		if status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"`+name+`","approve":"always","wait":true}`, run...); status != 200 || !strings.Contains(text, `"waiting"`) {
			t.Fatal(status, text)
		}
	}
	s.refused("POST", "/v1/contexts/a/calls/1.1/approve", `{}`, 403, "role", run...)
	s.refused("POST", "/v1/contexts/a/calls/1.1/reject", `{"reason":"no"}`, 403, "role", run...)
	s.refused("POST", "/v1/contexts/a/approve", `{}`, 403, "role", run...)
	for _, body := range []string{`{"retry":["1.1"]}`, `{"skip":["1.1"]}`, `{"result":{"1.1":1}}`, `{"from":"1.1"}`, `{"from":"1.1","set":{"n":2}}`} {
		s.refused("POST", "/v1/contexts/a/resume", body, 403, "role", run...)
	}
	if status, text := s.ask("POST", "/v1/contexts/a/resume", `{"wait":true}`, run...); status != 200 {
		t.Error(status, text)
	}
	if status, text := s.ask("POST", "/v1/contexts/a/calls/1.1/approve", `{"by":"eva"}`, decide...); status != 200 {
		t.Error(status, text)
	}
	if status, text := s.ask("DELETE", "/v1/runs/b", "", run...); status != 200 {
		t.Error(status, text)
	}
	for name, want := range map[string]string{"a": `"by":"ops","claimed":"eva"}`, "b": `"by":"ci"}`} {
		found := false
		for entry, err := range s.log.Journal(t.Context(), store.JournalFilter{Context: name}) {
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(entry.Data, want)
		}
		if !found {
			t.Errorf("the journal of %s does not have %s", name, want)
		}
	}
}

// TestTokens_PlainToken holds that the plain token has all roles beside named ones, under its name.
func TestTokens_PlainToken(t *testing.T) {
	s := serve(t, withTokens(work), nil, func(c *Config) { withSecrets(c); c.Token = "plain-0ne" })
	if status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json","approve":"never","context":"a","wait":true}`, "Authorization", "Bearer plain-0ne"); status != 200 {
		t.Error(status, text)
	}
	if status, _ := s.ask("GET", "/v1/contexts/a", "", bearer(host.MayRead)...); status != 200 {
		t.Error(status)
	}
}

// TestTokens_Reload holds that changed tokens are taken over, and that a server that was closed
// stays closed when the last token is removed.
func TestTokens_Reload(t *testing.T) {
	s := serve(t, withTokens(work), nil, withSecrets)
	s.write("obelus.lua", `return { serve = { tokens = { late = { env = "READ_TOKEN", may = "run" } } } }`)
	if r := s.host.Reload(); r.Err != nil || len(r.Pending) > 0 {
		t.Fatal(r.Err, r.Pending)
	}
	if status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json"}`, bearer(host.MayRead)...); status != 202 {
		t.Error(status, text)
	}
	s.refused("GET", "/v1/contexts", "", 401, "token", bearer(host.MayDecide)...)
	s.write("obelus.lua", `return {}`)
	if r := s.host.Reload(); r.Err != nil {
		t.Fatal(r.Err)
	}
	s.refused("GET", "/v1/contexts", "", 401, "token")
	s.refused("GET", "/v1/contexts", "", 401, "token", bearer(host.MayRead)...)

	open := serve(t, work, nil, withSecrets)
	open.expect("GET", "/v1/contexts", "", 200, "[]")
	open.write("obelus.lua", withTokens(nil)["obelus.lua"])
	if r := open.host.Reload(); r.Err != nil {
		t.Fatal(r.Err)
	}
	open.refused("GET", "/v1/contexts", "", 401, "token")
}

// TestTokens_AreNotTold holds that no error, log or context has a token.
func TestTokens_AreNotTold(t *testing.T) {
	var told logText
	s := serve(t, withTokens(work), nil, func(c *Config) {
		withSecrets(c)
		c.Logger = slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	text := s.refused("POST", "/v1/contexts/a/fork", "{}", 403, "role", bearer(host.MayRead)...)
	s.ask("POST", "/v1/runs", `{"plan":"plans/lack.lua","context":"a","wait":true}`, bearer(host.MayDecide)...)
	_, log := s.ask("GET", "/v1/contexts/a/log", "", bearer(host.MayRead)...)
	s.http.Close() // so that nothing is logged any more
	for _, secret := range secrets {
		if strings.Contains(told.String()+text+log, strings.TrimSpace(secret)) {
			t.Errorf("a token is told:\n%s\n%s\n%s", told.String(), text, log)
		}
	}
}

// TestCheckTokens holds that tokens that let nobody in are reported, by their variables.
func TestCheckTokens(t *testing.T) {
	tokens := []host.Token{{Name: "ci", Env: "CI", May: host.MayRead}, {Name: "ops", Env: "OPS", May: host.MayRun}}
	for _, test := range []struct{ ci, ops, plain, want string }{
		{"a", "b", "c", ""},
		{"a", "b", "", ""},
		{"a", " \n", "", "serve.tokens.ops: the environment variable OPS is not set, or empty: set it to the token, or remove this entry from obelus.lua"},
		{"secret", "secret\n", "", "serve.tokens.ops: the environment variable OPS has the same token as CI: give each its own"},
		{"secret", "b", "secret", "serve.tokens.ci: the environment variable CI has the same token as --token or OBELUS_TOKEN: give each its own"},
	} {
		err := CheckTokens(tokens, test.plain, func(variable string) string { return map[string]string{"CI": test.ci, "OPS": test.ops}[variable] })
		if got := ""; err != nil {
			if got = err.Error(); got != test.want {
				t.Errorf("%+v: got %s", test, got)
			}
		} else if test.want != "" {
			t.Errorf("%+v: no error", test)
		}
	}
}
