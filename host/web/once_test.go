package web

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"obelus/engine/journal"
)

// TestOnce holds that the same request gives the same run, and another under its name none.
func TestOnce(t *testing.T) {
	s := serve(t, work, nil, nil)
	body := `{"plan":"plans/double.lua","input":{"n":21,"list":{}},"context":"a","once":true,"wait":true}`
	for range 3 {
		s.expect("POST", "/v1/runs", body, 200, `{"context":"a","error":null,"output":42,"status":"done"}`)
	}
	s.expect("POST", "/v1/runs", strings.Replace(body, `,"wait":true`, "", 1), 202, `{"context":"a"}`)
	for _, other := range []string{
		`{"plan":"plans/double.lua","input":{"n":22},"context":"a","once":true}`,
		`{"plan":"plans/double.lua","context":"a","once":true,"wait":true}`,
		`{"plan":"plans/echo.json","input":{"n":21,"list":{}},"context":"a","once":true}`,
	} {
		if text := s.refused("POST", "/v1/runs", other, 409, "exists"); !strings.Contains(text, "context a exists, and was begun with") {
			t.Error(text)
		}
	}
	s.refused("POST", "/v1/runs", `{"plan":"plans/echo.json","once":true}`, 400, "request")
	s.refused("POST", "/v1/runs", `{"plan":"plans/eco.json","context":"a","once":true}`, 404, "no-plan")
	s.refused("POST", "/v1/runs", `{"plan":"plans/bad.lua","context":"b","once":true}`, 422, "plan")
	last, err := journal.In(s.log, "a").LastRun(t.Context())
	if err != nil || last.Tick != 1 {
		t.Errorf("%d runs, %v", last.Tick, err)
	}
}

// TestOnce_ByKey holds that a key names the context, unless the request does.
func TestOnce_ByKey(t *testing.T) {
	s := serve(t, work, nil, nil)
	body := `{"plan":"plans/echo.json","input":{"n":1}`
	for _, test := range []struct{ key, more, want string }{
		{"order-7", "", "order-7"},
		{"a key of words", "", "key-" + digest("a key of words")},
		{"..", "", "key-" + digest("..")},
		{"x", `,"context":"named"`, "named"},
	} {
		var contexts []string
		for range 2 {
			status, text := s.ask("POST", "/v1/runs", body+test.more+"}", "Idempotency-Key", test.key)
			if status != http.StatusAccepted {
				t.Errorf("%s: %d %s", test.key, status, text)
			}
			contexts = append(contexts, text)
		}
		if contexts[0] != contexts[1] {
			t.Errorf("%s: %v", test.key, contexts)
		}
		if want := `{"context":"` + test.want + `"}`; contexts[0] != want {
			t.Errorf("%s: %s, and not %s", test.key, contexts[0], want)
		}
		s.refused("POST", "/v1/runs", `{"plan":"plans/echo.json","input":{"n":2}`+test.more+"}", 409, "exists", "Idempotency-Key", test.key)
		s.refused("POST", "/v1/runs", `{"plan":"plans/echo.json"}`, 400, "request", "Idempotency-Key", " ")
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:32]
}

// TestOnce_AtOnce holds that the same requests that come at once, to two servers of one log, give
// one run.
func TestOnce_AtOnce(t *testing.T) {
	s := serve(t, work, nil, nil)
	first := *s
	s.open(nil)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			at := &first
			if i%2 == 0 {
				at = s
			}
			at.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":21},"context":"a","once":true,"wait":true}`, 200, `{"context":"a","error":null,"output":42,"status":"done"}`)
		})
	}
	all.Wait()
	last, err := journal.In(s.log, "a").LastRun(t.Context())
	if err != nil || last.Tick != 1 {
		t.Errorf("%d runs, %v", last.Tick, err)
	}
}

// TestOnce_Unfinished holds that a request for a run that goes on, or has halted, is answered with
// that run.
func TestOnce_Unfinished(t *testing.T) {
	files := maps.Clone(work)
	files["plans/waits.lua"] = `return { calls = { { _tool = "double", n = "†input.n", _outputPath = "†state" } }, output = "†state.double" }`
	p := newPause()
	s := serve(t, files, map[string]any{"pause": p}, nil)
	waits := `{"plan":"plans/waits.lua","context":"w","once":true,"wait":true}`
	for range 2 {
		s.expect("POST", "/v1/runs", waits, 200, `{"context":"w","error":null,"output":null,"status":"waiting"}`)
	}
	stop := `{"plan":"plans/stop.lua","context":"a","once":true`
	s.expect("POST", "/v1/runs", stop+"}", 202, `{"context":"a"}`)
	<-p.reached
	s.expect("POST", "/v1/runs", stop+"}", 202, `{"context":"a"}`)
	answered := make(chan string)
	go func() {
		_, text := s.ask("POST", "/v1/runs", stop+`,"wait":true}`)
		answered <- text
	}()
	close(p.resume)
	if text := <-answered; text != `{"context":"a","error":null,"output":"went on","status":"done"}` {
		t.Error(text)
	}
}
