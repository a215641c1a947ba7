package web

import (
	"strings"
	"testing"

	"obelus/engine/journal"
	"obelus/store"
)

// TestWho_Decides holds that who decides over HTTP is recorded: whoever has the token, or
// whoever reaches the server without one, and as what they say that they are beside that.
func TestWho_Decides(t *testing.T) {
	for _, test := range []struct {
		token, by string
		headers   []string
	}{
		{"", "local", nil},
		{"s3cret", "token", []string{"Authorization", "Bearer s3cret"}},
	} {
		s := serve(t, work, nil, func(c *Config) { c.Token = test.token })
		ask := func(method, path, body string) {
			t.Helper()
			if status, text := s.ask(method, path, body, test.headers...); status >= 300 {
				t.Fatalf("%s %s: %d %s", method, path, status, text)
			}
		}
		for _, name := range []string{"approved", "rejected", "cancelled"} {
			ask("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":2},"context":"`+name+`","approve":"always","wait":true}`)
		}
		ask("POST", "/v1/contexts/approved/calls/1.1/approve", `{"by":" eva "}`)
		ask("POST", "/v1/contexts/rejected/calls/1.1/reject", `{"reason":"no"}`)
		ask("DELETE", "/v1/runs/cancelled?by=mo", "")
		if status, text := s.ask("POST", "/v1/contexts/cancelled/calls/1.1/approve", `{"by":"`+strings.Repeat("x", 201)+`"}`, test.headers...); status != 400 || !strings.Contains(text, "it may have 200") {
			t.Errorf("a name of 201 bytes: %d %s", status, text)
		}
		for context, want := range map[string]journal.Who{
			"approved":  {By: test.by, Claimed: "eva"},
			"rejected":  {By: test.by},
			"cancelled": {By: test.by, Claimed: "mo"},
		} {
			found := false
			for entry, err := range s.log.Journal(t.Context(), store.JournalFilter{Context: context}) {
				if err != nil {
					t.Fatal(err)
				}
				said := `"by":"` + want.By + `"`
				if want.Claimed != "" {
					said += `,"claimed":"` + want.Claimed + `"`
				}
				found = found || strings.Contains(entry.Data, said+"}")
			}
			if !found {
				t.Errorf("with the token %q the journal of %s does not say %+v", test.token, context, want)
			}
		}
	}
}
