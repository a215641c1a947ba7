package web

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"obelus/host"
)

var tokenChanges = flag.Int("token-changes", 20, "how many random changes of tokens TestStreams_EndWithTheirToken makes")

// follower is a stream that a test has open.
type follower struct {
	path string
	role host.Role
	*bufio.Scanner
	close func()
}

// followAs opens a stream with the token of a role.
func (s *site) followAs(path string, role host.Role) *follower {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.http.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	headers := bearer(role)
	r.Header.Set(headers[0], headers[1])
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		s.t.Fatalf("%s: status %d", path, response.StatusCode)
	}
	return &follower{path, role, bufio.NewScanner(response.Body), func() { response.Body.Close() }}
}

// TestStreams_EndWithTheirToken holds that a stream ends once its request would not be answered any
// more, or with another role, and sends nothing of what comes after that; and that no other ends.
func TestStreams_EndWithTheirToken(t *testing.T) {
	s := serve(t, withTokens(map[string]string{
		"activities/work.lua": work["activities/work.lua"], "plans/echo.json": work["plans/echo.json"],
	}), nil, withSecrets)
	decide := bearer(host.MayDecide)
	if status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json","context":"c","wait":true}`, decide...); status != 200 {
		t.Fatal(status, text)
	}
	r := rand.New(rand.NewPCG(1, 0))
	roles := map[string]host.Role{"READ_TOKEN": host.MayRead, "RUN_TOKEN": host.MayRun}
	for n := range *tokenChanges {
		var open []*follower
		for _, path := range []string{"/v1/events", "/v1/events?inbox", "/v1/contexts/c/events"} {
			for _, role := range []host.Role{host.MayRead, host.MayRun} {
				open = append(open, s.followAs(path, role))
			}
		}
		entries, keeps := `ops = { env = "OPS_TOKEN", may = "decide" },`, map[host.Role]bool{}
		for variable, role := range roles {
			switch change := r.IntN(3); {
			case change == 0:
				entries += fmt.Sprintf(`t%d = { env = %q, may = "read" },`, role, variable) // under another name
			case change == 1:
				entries += fmt.Sprintf(`%s = { env = %q, may = %q },`, map[host.Role]string{host.MayRead: "reader", host.MayRun: "ci"}[role], variable, role)
				keeps[role] = true
			}
		}
		s.write("obelus.lua", `return { serve = { tokens = { `+entries+` } } }`)
		if reload := s.host.Reload(); reload.Err != nil {
			t.Fatal(reload.Err)
		}
		marker := fmt.Sprintf("marker%d", n)
		s.ask("POST", "/v1/contexts/c/messages", `{"type":"data","kind":"k","data":"`+marker+`"}`, decide...)
		s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json","context":"`+marker+`","wait":true}`, decide...)
		for _, f := range open {
			seen := false
			for !seen && f.Scan() {
				seen = strings.Contains(f.Text(), marker)
				if keeps[f.role] && strings.Contains(f.path, "inbox") {
					break // nothing waits
				}
			}
			if kept := keeps[f.role] && !strings.Contains(f.path, "inbox"); seen != kept {
				t.Errorf("change %d: %s by %s: kept %v, and it got what came then: %v\n%s", n, f.path, f.role, keeps[f.role], seen, entries)
			}
			f.close()
		}
		s.write("obelus.lua", withTokens(nil)["obelus.lua"])
		if reload := s.host.Reload(); reload.Err != nil {
			t.Fatal(reload.Err)
		}
	}
}

// TestLog_EndsWithItsToken holds that an answer in pieces stops where its request would not be
// answered any more.
func TestLog_EndsWithItsToken(t *testing.T) {
	s := serve(t, withTokens(nil), nil, withSecrets)
	decide := bearer(host.MayDecide)
	const messages, size = 20, 1 << 20 // more than the buffers of a connection hold
	body := `{"type":"data","kind":"k","data":"` + strings.Repeat("x", size) + `"}`
	for range messages {
		if status, text := s.ask("POST", "/v1/contexts/c/messages", body, decide...); status >= 300 {
			t.Fatal(status, text)
		}
	}
	f := s.followAs("/v1/contexts/c/log", host.MayRead)
	defer f.close()
	s.write("obelus.lua", `return { serve = { tokens = { ops = { env = "OPS_TOKEN", may = "decide" } } } }`)
	if reload := s.host.Reload(); reload.Err != nil {
		t.Fatal(reload.Err)
	}
	f.Buffer(nil, messages*size*2)
	sent := 0
	for f.Scan() {
		sent += len(f.Bytes())
	}
	if f.Err() == nil || sent >= messages*size {
		t.Errorf("%d bytes of %d were sent, and then: %v", sent, messages*size, f.Err())
	}
}
