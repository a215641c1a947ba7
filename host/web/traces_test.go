package web

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestTraces_SentAtTheEnd holds that runs are sent to the collector of the settings when they have
// ended or halted, and before the server has drained, with the headers of the environment.
func TestTraces_SentAtTheEnd(t *testing.T) {
	t.Setenv("COLLECTOR_KEY", "k1")
	var mu sync.Mutex
	var posted []string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		posted = append(posted, r.Header.Get("api-key")+" "+string(body))
	}))
	t.Cleanup(collector.Close)
	files := maps.Clone(work)
	files["obelus.lua"] = `return { serve = { otlp = { url = "` + collector.URL + `", content = true, headers = { ["api-key"] = { env = "COLLECTOR_KEY" } } } } }`
	s := serve(t, files, nil, nil)
	for context, body := range map[string]string{
		"a": `{"plan":"plans/double.lua","input":{"n":21},"wait":true,"context":"a"}`,
		"b": `{"plan":"plans/double.lua","wait":true,"context":"b"}`,
		"c": `{"plan":"plans/bad.lua","wait":true,"context":"c"}`,
	} {
		answer, err := http.Post(s.http.URL+"/v1/runs", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(context, err)
		}
		answer.Body.Close()
	}
	if err := s.server.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	all := strings.Join(posted, "\n")
	if len(posted) != 2 || strings.Count(all, "k1 {") != 2 || !strings.Contains(all, `{"key":"obelus.output","value":{"stringValue":"42"}}`) || !strings.Contains(all, `{"stringValue":"waiting"}`) {
		t.Errorf("%d were sent: %s", len(posted), all)
	}
}
