package web

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

var prunes = flag.Duration("prunes", 2*time.Second, "how long contexts are pruned while clients use them")

// TestAnswers_BesidePrunes holds that no request about a context that is pruned and made anew again
// and again is answered with a fault, or with damage: it is there or it is not.
func TestAnswers_BesidePrunes(t *testing.T) {
	s := serve(t, work, nil, nil)
	ask := func(method, path, body string) (int, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return response.StatusCode, string(text), err
	}
	end := time.Now().Add(*prunes)
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(client), 0))
			for time.Now().Before(end) {
				name := fmt.Sprintf("r%d", r.IntN(3))
				method, path, body := "GET", "/v1/contexts/"+name+[]string{"/log", "/get?ref=state", "/get", "/why?ref=state.double", "/calls", "/graph", "/ticks", "/steps", "", "/approvals", "/kinds"}[r.IntN(11)], ""
				switch r.IntN(4) {
				case 0:
					method, path, body = "POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"`+name+`","wait":true}`
				case 1:
					method, path, body = "POST", "/v1/contexts/"+name+"/messages", strings.Repeat(`{"type":"state","a":1}`+"\n", 1+r.IntN(40))
				}
				if status, text, err := ask(method, path, body); err != nil || status >= 500 && status != 503 {
					t.Errorf("%s %s: %d %s %v", method, path, status, text, err)
					return
				}
			}
		})
	}
	all.Go(func() {
		for n := 0; time.Now().Before(end); n++ {
			if info, err := s.log.Info(t.Context(), fmt.Sprintf("r%d", n%3)); err == nil {
				_ = s.log.Prune(t.Context(), info) // it may be in use
			}
		}
	})
	all.Wait()
}
