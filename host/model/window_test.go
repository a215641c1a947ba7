package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/host/model/modeltest"
	"obelus/store"
)

// TestWindow_OfOllama: where the settings say none, the window is the num_ctx of the model by the
// server, which is asked once, else 2,048; one that does not answer says nothing.
func TestWindow_OfOllama(t *testing.T) {
	for _, test := range []struct {
		parameters string
		status     int
		set, want  int
	}{
		{"stop \"x\"\nnum_ctx                        8192\ntemperature 1", 200, 0, 8192},
		{"temperature 1", 200, 0, 2048},
		{"num_ctx 8192", 200, 512, 512},
		{"", 404, 0, 0},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Model string }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != "POST" || r.URL.Path != "/api/show" || body.Model != "m:8b" {
				t.Errorf("%s %s of %v: %v", r.Method, r.URL, body, err)
			}
			asked++
			w.WriteHeader(test.status)
			fmt.Fprintf(w, `{"parameters": %q}`, test.parameters)
		}))
		c := Config{Name: "m", Provider: "ollama", Model: "m:8b", URL: server.URL + "/v1", Window: test.set}
		client, err := NewClient(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := New(c, Keep(client, func(text string) string { return text }))
		for range 2 {
			if got := m.Knowing(t.Context()).config.Window; got != test.want {
				t.Errorf("%q, %d, with window %d: %d, want %d", test.parameters, test.status, test.set, got, test.want)
			}
		}
		if test.status == 200 && test.set == 0 && asked != 1 {
			t.Errorf("it was asked %d times", asked)
		}
		server.Close()
		if got := m.ServerWindow(t.Context()); test.set > 0 && got != 0 {
			t.Errorf("a server that is gone says %d", got)
		}
	}
}

// TestWindow_OfACassette: a cassette that is replayed has the window that the server had.
func TestWindow_OfACassette(t *testing.T) {
	server := modeltest.NewServer(t)
	server.NumCtx = 3000
	config := Config{Name: "m", Provider: "ollama", Model: "m", URL: server.URL, Params: Params{MaxTokens: 100}}
	client, err := NewClient(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	proposal := cutProposal(map[string]any{"a": strings.Repeat("x", 20_000)})
	path := t.TempDir() + "/c.json"
	for _, recording := range []Recording{RecordMissing, ReplayOnly} {
		cassette, err := LoadCassette(path)
		if err != nil {
			t.Fatal(err)
		}
		if recording == ReplayOnly {
			client = nil
		}
		if _, err := New(config, cassette.Asker(client, recording)).Propose(t.Context(), proposal); errors.As(err, new(*plan.PlanError)) {
			err = nil // the answer is at random
		} else if err != nil {
			t.Errorf("recording %d: %v", recording, err)
		}
		if err := cassette.Save(); err != nil {
			t.Fatal(err)
		}
	}
	if requests := server.Requests(); len(requests) == 0 || !strings.Contains(requests[0].Prompt, "refer to it as †state.a") {
		t.Errorf("nothing was cut of %d requests", len(requests))
	}
}

// TestUsage_OfCutPrompts: a provider that counts far fewer tokens than a prompt has is doubted.
func TestUsage_OfCutPrompts(t *testing.T) {
	for _, test := range []struct {
		sent    int
		counted int64
		doubted bool
	}{{100_000, 25_000, false}, {100_000, 2048, true}, {15_000, 10, false}, {100_000, 0, false}} {
		u := checkUsage(plan.Usage{Input: test.counted, Output: 1}, exchanged{requests: 1, sent: test.sent, received: 10, written: 4, maxTokens: 100})
		if got := strings.Contains(u.Warning, "it may have read a part of it alone"); got != test.doubted {
			t.Errorf("%d tokens of %d bytes: %q", test.counted, test.sent, u.Warning)
		}
	}
}

// TestCassette_OfAnOlderVersion is told as such.
func TestCassette_OfAnOlderVersion(t *testing.T) {
	m := New(Config{Name: "m"}, nil)
	r := m.AskRequest(AskInput{Prompt: "Who?"})
	old := *r
	old.Version = 0
	c := &Cassette{path: "c.json"}
	if err := c.record(nil, old.JSON(), 0, &Answer{Value: store.Some("x")}, RecordMissing); err != nil {
		t.Fatal(err)
	}
	_, err := c.Asker(nil, ReplayOnly).Ask(t.Context(), r, nil)
	const want = "c.json: the ask of m is not recorded: the cassette is of an older version of obelus, which asked in other words: record it by obelus test --record"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
