package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"obelus/host/trace"
	"obelus/store/memory"
)

// collector answers posts with one status after another, and then with 200.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	answer   string
	bodies   [][]byte
	headers  http.Header
	blocked  chan struct{} // each post waits for it; nil for none
}

func newCollector(t testing.TB, statuses ...int) *collector {
	c := &collector{statuses: statuses, answer: "{}"}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.blocked != nil {
			<-c.blocked
		}
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		status := http.StatusOK
		if len(c.statuses) > 0 {
			status, c.statuses = c.statuses[0], c.statuses[1:]
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			status = http.StatusNotFound
		}
		c.bodies, c.headers = append(c.bodies, body), r.Header
		if status/100 == 3 {
			w.Header().Set("Location", "/v1/traces")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, c.answer)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.bodies)
}

func newSender(t testing.TB, config trace.Config) *trace.Sender {
	t.Helper()
	s, err := trace.NewSender(config)
	if err != nil {
		t.Fatal(err)
	}
	s.SetPause(time.Microsecond)
	return s
}

func TestSend_Posts(t *testing.T) {
	t.Setenv("COLLECTOR_KEY", " k1 \n")
	log := memory.New()
	run(t, log, "c")
	tr := of(t, log, "c", false)
	c := newCollector(t, http.StatusServiceUnavailable, http.StatusTooManyRequests)
	headers := []trace.Header{{Name: "api-key", Env: "COLLECTOR_KEY"}, {Name: "tenant", Value: "t"}}
	for _, url := range []string{c.URL, c.URL + "/", c.URL + "/v1/traces"} {
		if err := newSender(t, trace.Config{URL: url, Headers: headers}).Send(t.Context(), tr); err != nil {
			t.Fatal(url, err)
		}
	}
	if c.count() != 5 || !bytes.Equal(c.bodies[0], c.bodies[4]) || c.headers.Get("api-key") != "k1" || c.headers.Get("tenant") != "t" {
		t.Error(c.count(), c.headers)
	}
	if spans := decode(t, c.bodies[4]).ResourceSpans[0].ScopeSpans[0].Spans; len(spans) != len(tr.Spans) {
		t.Error(spans)
	}
}

func TestSend_Fails(t *testing.T) {
	t.Setenv("COLLECTOR_KEY", "k1")
	for _, test := range []struct {
		statuses []int
		answer   string
		headers  []trace.Header
		want     string
		posts    int
	}{
		{[]int{400}, "no such thing", nil, `400 Bad Request: "no such thing"`, 1},
		{[]int{307}, "", nil, "307 Temporary Redirect", 1},
		{[]int{503, 502, 504}, "", nil, "504 Gateway Timeout", 3},
		{nil, `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`, nil, `it refused 3 spans: "too old"`, 1},
		{nil, `{"partialSuccess":{"rejectedSpans":0}}`, nil, "", 1},
		{nil, `not JSON`, nil, "", 1},
		{nil, "", []trace.Header{{Name: "a", Env: "COLLECTOR_NONE"}}, "the environment variable COLLECTOR_NONE is not set", 0},
		{nil, "", []trace.Header{{Name: "a", Value: "x\ny"}}, "invalid header field value", 0},
	} {
		c := newCollector(t, test.statuses...)
		c.answer = test.answer
		err := newSender(t, trace.Config{URL: c.URL, Headers: test.headers}).Send(t.Context(), &trace.Trace{})
		if text := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(text, test.want) || c.count() != test.posts {
			t.Errorf("%v: %v after %d posts, not %q after %d", test.statuses, err, c.count(), test.want, test.posts)
		}
	}
}

func TestConfig_Check(t *testing.T) {
	secret := []trace.Header{{Name: "k", Env: "K"}}
	for _, test := range []struct {
		config trace.Config
		want   string
	}{
		{trace.Config{URL: "http://127.0.0.1:4318", Headers: secret}, ""},
		{trace.Config{URL: "http://localhost:4318", Headers: secret}, ""},
		{trace.Config{URL: "https://collector.example", Headers: secret}, ""},
		{trace.Config{URL: "http://collector.example:4318"}, ""},
		{trace.Config{URL: "http://collector.example:4318", Headers: secret}, "in the open"},
		{trace.Config{URL: ""}, "must be the address"},
		{trace.Config{URL: "127.0.0.1:4318"}, "must be the address"},
		{trace.Config{URL: "grpc://127.0.0.1:4317"}, "must be the address"},
		{trace.Config{URL: "http://127.0.0.1:4318/?a=b"}, "must be the address"},
		{trace.Config{URL: "https://me:pass@collector.example"}, "password"},
	} {
		if err := test.config.Check(); test.want == "" && err != nil || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: %v", test.config.URL, err)
		}
	}
}

// TestExporter_Sends holds that runs that were added are sent before Close returns, each once while
// it waits, and that failures are logged once.
func TestExporter_Sends(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	log := memory.New()
	for _, name := range []string{"a", "b", "c"} {
		run(t, log, name)
	}
	c := newCollector(t, 400, 400)
	c.blocked = make(chan struct{})
	var logged syncBuffer
	sender := newSender(t, trace.Config{URL: c.URL})
	e := trace.NewExporter(log, sender, func() trace.Options { return trace.Options{} }, slog.New(slog.NewTextHandler(&logged, nil)))
	for _, name := range []string{"a", "none", "b", "c", "b", "c", "b"} {
		e.Add(name)
	}
	close(c.blocked)
	e.Close(t.Context())
	e.Add("a")
	e.Close(t.Context())
	if n := c.count(); n != 3 {
		t.Errorf("%d were sent", n)
	}
	if text := logged.String(); strings.Count(text, "400 Bad Request") != 1 || !strings.Contains(text, "context=a") {
		t.Errorf("%s", text)
	}
	sender.CloseIdle()
	c.Close()
}

// TestExporter_NeverWaits holds that neither runs nor the end of a server wait for a collector that
// does not answer.
func TestExporter_NeverWaits(t *testing.T) {
	log := memory.New()
	run(t, log, "a")
	c := newCollector(t)
	c.blocked = make(chan struct{})
	defer close(c.blocked)
	var logged syncBuffer
	e := trace.NewExporter(log, newSender(t, trace.Config{URL: c.URL}), func() trace.Options { return trace.Options{} }, slog.New(slog.NewTextHandler(&logged, nil)))
	began := time.Now()
	e.Add("a")
	for n := range 3000 { // more than wait
		e.Add(fmt.Sprint("n", n))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	e.Close(ctx)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if text := logged.String(); !strings.Contains(text, "faster than they can be sent") || !strings.Contains(text, "traces not sent") {
		t.Errorf("%s", text)
	}
}

// syncBuffer is a buffer that goroutines share.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
