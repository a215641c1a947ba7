package web

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"obelus/store"
	"obelus/store/sqlite"
)

// runs is how many runs TestRuns_LeaveNothingBehind makes.
var runs = flag.Int("runs", 1000, "how many runs TestRuns_LeaveNothingBehind makes")

const (
	clients = 8
	oneCall = `{"plan":"plans/double.lua","input":{"n":21},"wait":true}`
)

// hammer has clients make so many runs, one after the other each, and gives how
// long each took.
func hammer(t testing.TB, url string, runs int) []time.Duration {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var mu sync.Mutex
	var group sync.WaitGroup
	took := make([]time.Duration, 0, runs)
	for i := range clients {
		group.Go(func() {
			for n := i; n < runs; n += clients {
				start := time.Now()
				r, err := client.Post(url+"/v1/runs", "application/json", strings.NewReader(oneCall))
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err != nil || !strings.Contains(string(text), `"output":42`) {
					t.Errorf("%v: %d %s", err, r.StatusCode, text)
					return
				}
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return took
}

// TestRuns_LeaveNothingBehind: runs leave nothing behind in the process.
func TestRuns_LeaveNothingBehind(t *testing.T) {
	s := serve(t, work, nil, nil)
	heap := func(runs int) uint64 {
		hammer(t, s.http.URL, runs)
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	early := heap(*runs)
	before := goleak.IgnoreCurrent()
	if late := heap(*runs); late > early+early/10+1<<20 {
		t.Errorf("the heap has %d bytes after %d runs, %d after %d more", early, *runs, late, *runs)
	}
	goleak.VerifyNone(t, before)
	if active, queued := s.server.supervisor.Load(); active+queued+len(s.server.supervisor.Runs()) != 0 {
		t.Errorf("%d runs are still held, %d queued", active, queued)
	}
}

// BenchmarkServe: runs of a plan of one call by eight clients, each durable.
func BenchmarkServe(b *testing.B) {
	s := serve(b, work, nil, nil)
	old := time.Now().Add(-time.Hour) // as the files of most projects
	if err := os.Chtimes(filepath.Join(s.dir, "plans/double.lua"), old, old); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	took := hammer(b, s.http.URL, b.N)
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
}

// BenchmarkServe_Client is what the clients of BenchmarkServe, and net/http, take of its figures: they
// ask a handler that answers a constant.
func BenchmarkServe_Client(b *testing.B) {
	constant := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"context":"01KB0000000000000000000000","error":null,"output":42,"status":"done"}`+"\n")
	}))
	defer constant.Close()
	b.ReportAllocs()
	b.ResetTimer()
	hammer(b, constant.URL, b.N)
}

// BenchmarkBareAppend is what a run can't do without: a durable append.
func BenchmarkBareAppend(b *testing.B) {
	log, err := sqlite.Open(filepath.Join(b.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	messages := []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"x": "y"})}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := log.Append(b.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: messages}); err != nil {
			b.Fatal(err)
		}
	}
}
