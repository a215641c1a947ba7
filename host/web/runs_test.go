package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
)

// TestQueue_WaitsAndRefuses: of runs beyond those that run, some wait, and the rest are refused.
func TestQueue_WaitsAndRefuses(t *testing.T) {
	p := newPause()
	s := serve(t, work, map[string]any{"pause": p}, func(c *Config) { c.Runs, c.Queue = 1, 1 })
	s.expect("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"a"}`, 202, `{"context":"a"}`)
	<-p.reached
	queued := make(chan string)
	go func() {
		_, text := s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"b","wait":true}`)
		queued <- text
	}()
	s.awaitQueued(1)
	r, err := http.Post(s.http.URL+"/v1/runs", "application/json", strings.NewReader(`{"plan":"plans/double.lua"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	close(p.resume)
	if text := <-queued; text != `{"context":"b","error":null,"output":2,"status":"done"}` {
		t.Error(text)
	}
}

// TestCancel_QueuedToGoOn: what waits for its turn to go on does not once it is
// cancelled.
func TestCancel_QueuedToGoOn(t *testing.T) {
	p := newPause()
	s := serve(t, work, map[string]any{"pause": p}, func(c *Config) { c.Runs = 1 })
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"a","wait":true}`)
	s.ask("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"b"}`)
	<-p.reached
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"input","n":4}`)
	s.awaitQueued(1)
	s.ask("DELETE", "/v1/runs/a", "")
	all := s.server.supervisor.Runs()
	close(p.resume)
	for _, run := range all {
		<-run.Ended()
	}
	if last, err := journal.In(s.log, "a").LastRun(t.Context()); err != nil || last.Status != journal.RunCancelled {
		t.Errorf("the run is %s, %v", last.Status, err)
	}
}

// TestCancel_QueuedRequests: what somebody asked for and what waits for its turn is cancelled
// with its context, and can be withdrawn before anything of it is in the log.
func TestCancel_QueuedRequests(t *testing.T) {
	p := newPause()
	s := serve(t, work, map[string]any{"pause": p}, func(c *Config) { c.Runs = 1 })
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"a","wait":true}`)
	s.ask("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"b"}`)
	<-p.reached
	answers := make(chan string)
	queue := func(path, body string) {
		n := s.queued()
		go func() {
			_, text := s.ask("POST", path, body)
			answers <- text
		}()
		s.awaitQueued(n + 1)
	}
	const gone = `{"context":"%s","error":{"code":"cancelled","message":"it was cancelled"},"output":null,"status":"cancelled"}`
	queue("/v1/contexts/a/resume", `{}`)
	queue("/v1/contexts/a/resume", `{"wait":true}`)
	queue("/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"c"}`)
	for name, requests := range map[string]int{"a": 2, "c": 1} {
		s.expect("DELETE", "/v1/runs/"+name, "", 200, fmt.Sprintf(gone, name))
		for range requests {
			if text := <-answers; text != fmt.Sprintf(gone, name) {
				t.Error(text)
			}
		}
	}
	if n := s.queued(); n != 0 {
		t.Errorf("%d wait", n)
	}
	s.refused("DELETE", "/v1/runs/c", "", 404, "no-context")
	close(p.resume)
	s.until("b", journal.RunDone)
	if last, err := journal.In(s.log, "a").LastRun(t.Context()); err != nil || last.Status != journal.RunCancelled {
		t.Errorf("the run is %s, %v", last.Status, err)
	}
}

// TestDrain_QueuedRequests: who waits for a run's turn is told at once that it won't come.
func TestDrain_QueuedRequests(t *testing.T) {
	p := newPause()
	s := serve(t, work, map[string]any{"pause": p}, func(c *Config) { c.Runs = 1 })
	s.ask("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"a"}`)
	<-p.reached
	told := make(chan string)
	go func() {
		told <- s.refused("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"b"}`, 503, "stopping")
	}()
	s.awaitQueued(1)
	drained := make(chan error)
	go func() { drained <- s.server.Drain(context.Background()) }()
	<-told
	close(p.resume)
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

func TestCancel_Runs(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/sleep.lua","context":"a"}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/sleep.lua","context":"a"}`, 409, `{"error":{"code":"busy","message":"context a is in use: wait until its run has come to its end or to a halt"}}`)
	waited := make(chan string)
	go func() {
		_, text := s.ask("POST", "/v1/runs", `{"plan":"plans/sleep.lua","context":"b","wait":true}`)
		waited <- text
	}()
	s.events("a", "", func(e event) bool { return strings.Contains(e.data, `"status":"running"`) && e.kind == "call" })
	const cancelled = `{"context":"%s","error":{"code":"cancelled","message":"it was cancelled"},"output":null,"status":"cancelled"}`
	s.expect("DELETE", "/v1/runs/a", "", 200, fmt.Sprintf(cancelled, "a"))
	for {
		if status, text := s.ask("DELETE", "/v1/runs/b", ""); status == 200 {
			if text != fmt.Sprintf(cancelled, "b") {
				t.Error(text)
			}
			break
		}
	}
	if text := <-waited; text != fmt.Sprintf(cancelled, "b") {
		t.Errorf("who waited got %s", text)
	}
	s.refused("DELETE", "/v1/runs/a", "", 409, "call")

	// One whose planner thinks has not begun, and leaves nothing.
	go func() {
		_, text := s.ask("POST", "/v1/runs", `{"plan":"plans/think.lua","context":"d"}`)
		waited <- text
	}()
	for {
		if status, text := s.ask("DELETE", "/v1/runs/d", ""); status != 404 {
			if text != fmt.Sprintf(cancelled, "d") {
				t.Error(text)
			}
			break
		}
	}
	if text := <-waited; text != fmt.Sprintf(cancelled, "d") {
		t.Errorf("who waited got %s", text)
	}
	s.refused("GET", "/v1/contexts/d", "", 404, "no-context")

	// One that waits goes on no more by itself, but when it is asked to.
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"c","wait":true}`)
	s.expect("DELETE", "/v1/runs/c", "", 200, fmt.Sprintf(cancelled, "c"))
	s.ask("POST", "/v1/contexts/c/messages", `{"type":"input","n":4}`)
	s.expect("POST", "/v1/contexts/c/resume", `{"wait":true}`, 200, `{"context":"c","error":null,"output":8,"status":"done"}`)
}

// TestRuns_RefusedLeaveNothing: of runs that are refused nothing is left.
func TestRuns_RefusedLeaveNothing(t *testing.T) {
	p := newPause()
	s := serve(t, work, map[string]any{"pause": p}, nil)
	defer close(p.resume)
	s.expect("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"a"}`, 202, `{"context":"a"}`)
	kept := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := kept()
	for range 30_000 {
		var busy *engine.BusyError
		if _, err := s.server.supervisor.Resume(t.Context(), engine.Resume{Context: "a"}); !errors.As(err, &busy) {
			t.Fatal(err)
		}
	}
	if more := kept() - before; more > 1<<20 {
		t.Errorf("30,000 runs that were refused have left %d bytes", more)
	}
}

// TestRuns_Timeout: a run that takes too long is cancelled.
func TestRuns_Timeout(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Timeout = 1e8 })
	s.expect("POST", "/v1/runs", `{"plan":"plans/sleep.lua","context":"a","wait":true}`, 200,
		`{"context":"a","error":{"code":"cancelled","message":"it took longer than a run may"},"output":null,"status":"cancelled"}`)
}

var pay = map[string]string{
	"obelus.lua": "return { approve = 'always' }",
	"activities/pay.lua": `
		Tool.register("pay", { properties = { amount = { type = "number" } } })
		Activity.register("pay", function(call) return { paid = call.amount } end)`,
	"plans/pay.lua": `return { calls = { { _tool = "pay", amount = "†input.amount", _outputPath = "†state || †refusal" } }, output = "†state.paid || †refusal.message" }`,
}

// TestDecisions_InDelegates: what delegates hold, calls and lazy plans, is decided about from
// the context that waits for it.
func TestDecisions_InDelegates(t *testing.T) {
	inner := `return { calls = { { _tool = "pay", amount = "†input.amount", _outputPath = "†state" } }, output = "†state.paid", mode = "lazy" }`
	outer := `return { calls = { { _tool = "hand", _delegate = "plans/inner.lua", amount = 7, _outputPath = "†state.paid" } }, output = "†state.paid" }`
	s := serve(t, map[string]string{
		"obelus.lua": `return { approve = "pay" }`,
		"activities/pay.lua": `
			Tool.register("hand", {})
			Activity.register("pay", function(call) return { paid = call.amount } end)`,
		"plans/inner.lua": inner,
		"plans/outer.lua": outer,
		"plans/two.lua": `return { calls = {
			{ _tool = "hand", _delegate = "plans/inner.lua", amount = 1, _outputPath = "†state.a" },
			{ _tool = "hand", _delegate = "plans/inner.lua", amount = 2, _outputPath = "†state.b" } } }`,
	}, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/outer.lua","context":"a","wait":true}`)
	if status, text := s.ask("GET", "/v1/contexts/a/approvals", ""); status != 200 || !regexp.MustCompile(`^\[{"context":"a.1.1","plan":"plans/inner.lua","tick":1,"since":"20[^"]*Z","hash":"\w{12}","calls":\[{"call":"1.1","tool":"pay","arguments":\[{"name":"amount","value":"†input.amount","now":7}\],"scopes":\[\],"writes":"†state","held":true}\],"output":"†state.paid"}\]$`).MatchString(text) {
		t.Errorf("what is to be approved: %d %s", status, text)
	}
	hash := s.planHash("a")
	s.expect("POST", "/v1/contexts/a/approve", `{"hash":"`+hash+`"}`, 200, `{"context":"a.1.1","decision":"approved","hash":"`+hash+`"}`)
	s.events("a.1.1", "", func(e event) bool { return strings.Contains(e.data, `"held"`) })
	s.expect("POST", "/v1/contexts/a/calls/1.1/approve", `{"set":{"amount":5}}`, 200, `{"call":"1.1","context":"a.1.1","decision":"approved"}`)
	s.until("a", journal.RunDone)
	s.expect("GET", "/v1/contexts/a/get?ref=state.paid", "", 200, "5")
	s.ask("POST", "/v1/runs", `{"plan":"plans/two.lua","context":"b","wait":true}`)
	s.refused("POST", "/v1/contexts/b/approve", `{"hash":"`+hash+`"}`, 409, "call")
	s.refused("POST", "/v1/contexts/b/calls/1.3/approve", "", 404, "no-call")
}

// TestDecisions_SentTwice: a decision that is sent again, after an answer that was lost, is not
// one about what a delegate holds under the same number.
func TestDecisions_SentTwice(t *testing.T) {
	inner := `return { calls = { { _tool = "pay", amount = 1000000, _outputPath = "†state" } }, mode = "%s" }`
	s := serve(t, map[string]string{
		"activities/pay.lua": `
			Tool.register("hand", {})
			Activity.register("pay", function(call) return { paid = call.amount } end)`,
		"plans/eager.lua": fmt.Sprintf(inner, "eager"),
		"plans/lazy.lua":  fmt.Sprintf(inner, "lazy"),
		"plans/a.lua": `return { calls = {
			{ _tool = "pay", amount = 1, _outputPath = "†state.paid" },
			{ _tool = "hand", _delegate = "plans/eager.lua", _outputPath = "†state.inner" } } }`,
		"plans/b.lua": `return { calls = { { _tool = "hand", _delegate = "plans/lazy.lua", _outputPath = "†state.inner" } }, mode = "lazy" }`,
	}, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/a.lua","context":"a","approve":"pay","wait":true}`)
	s.expect("POST", "/v1/contexts/a/calls/1.1/approve", "", 200, `{"call":"1.1","context":"a","decision":"approved"}`)
	s.refused("POST", "/v1/contexts/a/calls/1.1/approve", "", 409, "call")
	s.events("a", "", func(e event) bool {
		return strings.Contains(e.data, `"call":"1.1"`) && strings.Contains(e.data, `"done"`)
	})
	s.refused("POST", "/v1/contexts/a/calls/1.1/approve", "", 409, "call")
	s.ask("POST", "/v1/runs", `{"plan":"plans/b.lua","context":"b","wait":true}`)
	hash := s.planHash("b")
	s.expect("POST", "/v1/contexts/b/approve", `{"hash":"`+hash+`"}`, 200, `{"context":"b","decision":"approved","hash":"`+hash+`"}`)
	s.events("b", "", func(e event) bool { return e.kind == "call" && strings.Contains(e.data, `"waiting"`) })
	s.refused("POST", "/v1/contexts/b/approve", `{"hash":"`+hash+`"}`, 409, "call")
	inside := s.planHash("b.1.1")
	s.expect("POST", "/v1/contexts/b.1.1/approve", `{"hash":"`+inside+`"}`, 200, `{"context":"b.1.1","decision":"approved","hash":"`+inside+`"}`)
}

func TestDecisions_Recorded(t *testing.T) {
	s := serve(t, pay, nil, nil)
	held := func(name string) {
		t.Helper()
		s.expect("POST", "/v1/runs", `{"plan":"plans/pay.lua","input":{"amount":7},"context":"`+name+`","wait":true}`, 200,
			`{"context":"`+name+`","error":null,"output":null,"status":"waiting"}`)
	}
	goesOn := func(name string) string {
		t.Helper()
		all := s.events(name, "", ended)
		var run struct{ Output any }
		if err := json.Unmarshal([]byte(all[len(all)-1].data), &run); err != nil {
			t.Fatal(err)
		}
		return string(store.EncodeJSON(run.Output))
	}
	held("a")
	var approvals []journal.Approval
	if _, text := s.ask("GET", "/v1/contexts/a/approvals", ""); json.Unmarshal([]byte(text), &approvals) != nil || len(approvals) != 1 || approvals[0].Call != "1.1" {
		t.Errorf("%+v", approvals)
	}
	s.refused("POST", "/v1/contexts/a/calls/1.1/approve", `{"set":{"amount":"much"}}`, 422, "message")
	s.refused("POST", "/v1/contexts/a/calls/1.1/approve", `{"set":7}`, 400, "request")
	s.expect("POST", "/v1/contexts/a/calls/1.1/approve", `{"set":{"amount":5}}`, 200, `{"call":"1.1","context":"a","decision":"approved"}`)
	if got := goesOn("a"); got != "5" {
		t.Errorf("paid %s", got)
	}
	s.refused("POST", "/v1/contexts/a/calls/1.1/approve", "", 409, "call")
	held("b")
	s.expect("POST", "/v1/contexts/b/calls/1.1/reject", `{"reason":"no receipt"}`, 200, `{"call":"1.1","context":"b","decision":"rejected"}`)
	if got := goesOn("b"); got != `"no receipt"` {
		t.Errorf("got %s", got)
	}

	// Somebody else decides, in another process.
	held("c")
	other, err := sqlite.Open(filepath.Join(s.dir, "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	elsewhere := &engine.Runner{Log: other, Registry: s.host.Generation().Registry()}
	if err := elsewhere.Decide(t.Context(), journal.Decision{Context: "c", Call: "1.1"}); err != nil {
		t.Fatal(err)
	}
	if got := goesOn("c"); got != "7" {
		t.Errorf("paid %s", got)
	}
}

// TestRuns_InputAppended: what a run waits for may come from anybody.
func TestRuns_InputAppended(t *testing.T) {
	s := serve(t, work, nil, nil)
	other, err := sqlite.Open(filepath.Join(s.dir, "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, send := range map[string]func(name string) error{
		"a": func(name string) error {
			s.ask("POST", "/v1/contexts/"+name+"/messages", `{"type":"input","n":4}`)
			return nil
		},
		"b": func(name string) error {
			messages, err := store.ParseMessages([]byte(`{"type":"input","n":4}`))
			if err == nil {
				_, err = engine.Append(t.Context(), other, name, messages)
			}
			return err
		},
	} {
		s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"`+name+`","wait":true}`)
		if err := send(name); err != nil {
			t.Fatal(err)
		}
		s.until(name, journal.RunDone)
	}
}

// halts is how often the runs of a context have come to a halt or an end.
func (s *site) halts(name string) (n int) {
	s.t.Helper()
	for entry, err := range s.log.Journal(s.t.Context(), store.JournalFilter{Context: name, Event: "run"}) {
		if err != nil || entry.Event != "run" {
			s.t.Fatal(err)
		}
		n++
	}
	return n
}

// TestRuns_HeldElsewhere: of a run in another process it is told that there is one, and
// not where.
func TestRuns_HeldElsewhere(t *testing.T) {
	s := serve(t, work, nil, nil)
	other, err := sqlite.Open(filepath.Join(s.dir, "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"a","wait":true}`)
	if _, err := other.Append(t.Context(), store.Batch{Context: "a", ExpectSeq: store.AnySeq, Lease: &store.Lease{For: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"POST /v1/contexts/a/resume", "DELETE /v1/runs/a"} {
		method, path, _ := strings.Cut(request, " ")
		if message := s.refused(method, path, "", 409, "busy"); strings.Contains(message, "process") {
			t.Errorf("%s: %s", request, message)
		}
	}
}

// TestEvents_Followed: a stream tells everything once, in order, wherever it is taken
// up, and goes on with what happens.
func TestEvents_Followed(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua": "",
		"activities/a.lua": `
			Activity.register("two", function(call) return { a = call.n, b = call.n } end)`,
		"plans/p.lua": `
			local calls = {}
			for i = 1, 5 do calls[i] = { _tool = "two", n = i, x = i > 1 and "†s" .. i - 1 .. ".a" or 0, _outputPath = "†s" .. i .. " && †t" .. i } end
			return { context = { Message.state { x = 1 }, Message.state { y = 1 } }, calls = calls, output = "†s5.a" }`,
	}, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/p.lua","context":"other","wait":true}`)
	var follower sync.WaitGroup
	s.ask("POST", "/v1/contexts/a/messages", `[{"type":"state","z":1},{"type":"state","z":2}]`)
	var live []event
	follower.Go(func() { live = s.events("a", "", ended) })
	s.ask("POST", "/v1/runs", `{"plan":"plans/p.lua","context":"a","wait":true}`)
	follower.Wait()
	all := s.events("a", "", ended)
	if !slices.Equal(all, live) {
		t.Errorf("live    %v\nafterwards %v", live, all)
	}
	count := map[string]int{}
	last := 0
	for i, e := range all {
		count[e.kind]++
		id := 0
		if _, err := fmt.Sscan(e.id, &id); err != nil || id <= last {
			t.Errorf("id %s after %d", e.id, last)
		}
		last = id
		if i == len(all)-1 {
			break
		}
		if rest := s.events("a", e.id, ended); !slices.Equal(rest, all[i+1:]) {
			t.Errorf("after %s: %v\nnot %v", e.id, rest, all[i+1:])
		}
	}
	if want := map[string]int{"message": 2 + 2 + 1 + 10, "call": 10, "run": 2}; fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("%v, not %v", count, want)
	}
}

// crowd is a log that counts who reads a context's journal at once.
type crowd struct {
	store.Log
	now, most atomic.Int64
}

func (l *crowd) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if f.Context != "" && !f.Newest {
			for now, most := l.now.Add(1), l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); {
				most = l.most.Load()
			}
			defer l.now.Add(-1)
			time.Sleep(time.Millisecond) // as a slow disk, so that others come meanwhile
		}
		l.Log.Journal(ctx, f)(yield)
	}
}

// TestEvents_ManyFollowers: all who follow a context get everything, and take turns at
// the log.
func TestEvents_ManyFollowers(t *testing.T) {
	l := &crowd{}
	s := serve(t, work, nil, func(c *Config) { l.Log, c.Log = c.Log, l })
	var many []string
	for i := range 1000 { // several portions
		many = append(many, fmt.Sprintf(`{"type":"state","n":%d,"text":%q}`, i, strings.Repeat("x", 200)))
	}
	s.ask("POST", "/v1/contexts/a/messages", "["+strings.Join(many, ",")+"]")
	var followers sync.WaitGroup
	for range 30 {
		followers.Go(func() {
			if all := s.events("a", "", ended); len(all) != 1000+6 {
				t.Errorf("%d events", len(all))
			}
		})
	}
	s.ask("POST", "/v1/runs", `{"plan":"plans/fail.lua","context":"a","wait":true}`)
	followers.Wait()
	if most := l.most.Load(); most > readers+1 {
		t.Errorf("%d read the log at once", most)
	}
}

// over is a context whose deadline comes when the test says so.
type over struct {
	context.Context
	done chan struct{}
}

func (c over) Done() <-chan struct{} { return c.done }

func (c over) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestServer_Mounted: the server may stand below a path, behind a handler that gives its
// requests so much time.
func TestServer_Mounted(t *testing.T) {
	p := newPause()
	defer close(p.resume)
	s := serve(t, work, map[string]any{"pause": p}, func(c *Config) { c.Runs = 1 })
	done := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/obelus/", http.StripPrefix("/obelus", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.server.ServeHTTP(w, r.WithContext(over{r.Context(), done}))
	})))
	mounted := httptest.NewServer(mux)
	defer mounted.Close()
	post := func(path, body string) (*http.Response, string) {
		response, err := http.Post(mounted.URL+"/obelus/v1/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, string(text)
	}
	if response, text := post("runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"a"}`); response.StatusCode != http.StatusAccepted || response.Header.Get("Location") != "/obelus/v1/contexts/a" {
		t.Errorf("%s %s, %s", response.Status, text, response.Header.Get("Location"))
	}
	go func() {
		<-p.reached
		close(done)
	}()
	if response, text := post("runs", `{"plan":"plans/stop.lua","context":"b","wait":true}`); response.StatusCode != http.StatusAccepted || strings.TrimSpace(text) != `{"context":"b"}` {
		t.Errorf("%s %s", response.Status, text)
	}
	for path, body := range map[string]string{
		"runs":              `{"plan":"plans/stop.lua","context":"c","wait":true}`,
		"call":              `{"call":{"_tool":"sleep"}}`,
		"contexts/a/replay": ``,
		"check":             `{"plan":"plans/double.lua"}`,
	} {
		if response, text := post(path, body); response.StatusCode != http.StatusGatewayTimeout || !strings.Contains(text, `"code":"time"`) {
			t.Errorf("%s: %s %s", path, response.Status, text)
		}
	}
}

// TestDrain_FollowersLearnTheEnd: who follows a run learns how it came out, also if it goes on for a
// while after the server was told to stop.
func TestDrain_FollowersLearnTheEnd(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua": "return { drain = '400ms' }", "activities/work.lua": work["activities/work.lua"], "plans/sleep.lua": work["plans/sleep.lua"],
	}, nil, nil)
	drained := make(chan error, 1)
	s.ask("POST", "/v1/runs", `{"plan":"plans/sleep.lua","context":"a"}`)
	all := s.events("a", "", func(e event) bool {
		if e.kind == "call" && strings.Contains(e.data, `"status":"running"`) {
			go func() { drained <- s.server.Drain(context.Background()) }()
		}
		return ended(e)
	})
	if last := all[len(all)-1]; !strings.Contains(last.data, `"status":"interrupted"`) {
		t.Errorf("the last event is %v", last)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// TestDrain_LetsCallsEnd: a server that is stopped leaves nothing half done, and the next one
// goes on with it.
func TestDrain_LetsCallsEnd(t *testing.T) {
	files := map[string]string{}
	for name, text := range work {
		files[name] = text
	}
	s := serve(t, files, nil, nil)
	waited := make(chan string)
	go func() {
		_, text := s.ask("POST", "/v1/runs", `{"plan":"plans/sleep.lua","context":"a","wait":true}`)
		waited <- text
	}()
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"state","x":1}`) // so that it is there
	s.events("a", "", func(e event) bool { return e.kind == "call" })
	s.ask("POST", "/v1/runs", `{"plan":"plans/sleep.lua","context":"unwanted"}`)
	s.ask("DELETE", "/v1/runs/unwanted", "")
	if err := s.server.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if text := <-waited; text != `{"context":"a","error":{"code":"stopped","message":"the host was stopped"},"output":null,"status":"interrupted"}` {
		t.Error(text)
	}
	s.refused("GET", "/healthz", "", 503, "stopping")
	s.refused("POST", "/v1/runs", `{"plan":"plans/double.lua"}`, 503, "stopping")
	s.http.Close()

	s.write("activities/work.lua", strings.Replace(files["activities/work.lua"], `require("time").sleep(50)`, `return "woken"`, 1))
	if r := s.host.Reload(); r.Err != nil {
		t.Fatal(r.Err)
	}
	s.open(nil)
	s.until("a", journal.RunDone)
	s.expect("GET", "/v1/contexts/a/get?ref=state", "", 200, `"woken"`)
	if last, err := journal.In(s.log, "unwanted").LastRun(t.Context()); err != nil || last.Status != journal.RunCancelled {
		t.Errorf("the one that was cancelled is %s, %v", last.Status, err)
	}
}

// crowded has no room to open one file more.
type crowded struct{ fs.FS }

func (c crowded) Open(name string) (fs.File, error) {
	if name == "plans/double.lua" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return c.FS.Open(name)
}

// TestRuns_PlanUnreadableForNow: what a plan can't be read for may pass, and is nothing that is
// wrong with it.
func TestRuns_PlanUnreadableForNow(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) {
		dir := t.TempDir()
		h, err := host.Open(host.Config{FS: crowded{os.DirFS(dir)}, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		c.Host = h
	})
	if text := s.refused("POST", "/v1/runs", `{"plan":"plans/double.lua","wait":true}`, 503, "internal"); !strings.Contains(text, "too many open files") {
		t.Error(text)
	}
}

// tries counts the attempts of a call for a script.
type tries struct{ n atomic.Int64 }

// Next counts one more.
func (t *tries) Next() int64 { return t.n.Add(1) }

// TestRetries_RestOverHTTP: a run whose call pauses for long answers as waiting, with the failure
// and the time of the next attempt, and goes on by itself.
func TestRetries_RestOverHTTP(t *testing.T) {
	files := map[string]string{
		"obelus.lua": "return {}",
		"activities/a.lua": `Activity.register("flaky", { retries = 2, backoff = "200ms" }, function(call, context, tool, key)
			local n = tries:Next()
			if n < 3 then return nil, "down" end
			return { attempt = n, key = key }
		end)`,
		"plans/flaky.lua": `return { calls = { { _tool = "flaky", _outputPath = "†state" } }, output = "†state" }`,
	}
	s := serve(t, files, map[string]any{"tries": &tries{}}, func(c *Config) { c.poll, c.rest = 5*time.Millisecond, 50*time.Millisecond })
	s.expect("POST", "/v1/runs", `{"plan":"plans/flaky.lua","context":"a","wait":true}`, 200, `{"context":"a","error":null,"output":null,"status":"waiting"}`)
	rested := 0
	for entry, err := range s.log.Journal(t.Context(), store.JournalFilter{Context: "a", Call: "1.1", Event: string(journal.Waiting)}) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := journal.ReadRecord(entry)
		if err != nil || !r.Rests || r.RetryAt == "" || r.MaxTries != 3 || r.Failures != r.Attempts {
			t.Errorf("it rests as %+v, %v", r, err)
		}
		rested++
	}
	if rested == 0 {
		t.Error("it has not rested")
	}
	s.until("a", journal.RunDone)
	s.expect("GET", "/v1/contexts/a/get?ref=state", "", 200, `{"attempt":3,"key":"a/1.1"}`)
}

// TestMetrics_Held holds that the decisions that wait for a person are counted, plans to be released
// and calls of delegates among them, and for how long the oldest waits.
func TestMetrics_Held(t *testing.T) {
	s := serve(t, work, nil, nil)
	expect := func(n int, waits bool) {
		t.Helper()
		_, text := s.ask("GET", "/metrics", "")
		if !strings.Contains(text, fmt.Sprintf("\nobelus_held %d\n", n)) || strings.Contains(text, "\nobelus_held_oldest_seconds 0\n") == waits || strings.Contains(text, "NaN") {
			t.Errorf("not %d:\n%s", n, text)
		}
	}
	expect(0, false)
	for i, more := range []string{`"approve":"always"`, `"mode":"lazy"`, `"approve":"always"`} {
		if status, text := s.ask("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/double.lua","input":{"n":1},"context":"h%d",%s,"wait":true}`, i, more)); status != 200 || !strings.Contains(text, "waiting") {
			t.Fatal(status, text)
		}
		expect(i+1, true)
	}
	for i, path := range []string{"h0/calls/1.1/approve", "h1/approve", "h2/calls/1.1/approve"} {
		name, what, _ := strings.Cut(path, "/")
		body := ""
		if what == "approve" {
			body = `{"hash":"` + s.planHash(name) + `"}`
		}
		if status, text := s.ask("POST", "/v1/contexts/"+path, body); status != 200 {
			t.Fatal(status, text)
		}
		s.outputOf(name)
		expect(2-i, i < 2)
	}
}
