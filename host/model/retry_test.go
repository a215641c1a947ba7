package model

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine/plan"
	"obelus/host/model/modeltest"
)

func TestRetry(t *testing.T) {
	const long = 24 * time.Hour
	for _, wire := range []string{wireOpenAI, wireAnthropic} {
		for _, test := range []struct {
			name     string
			faults   []modeltest.Fault
			requests int
			from, to time.Duration // that it takes
			err      string        // empty if it succeeds
		}{
			{"nothing wrong", nil, 1, 0, 0, ""},
			{"429 says how long", []modeltest.Fault{modeltest.TooManyRequests, modeltest.TooManyRequests}, 3, 14 * time.Second, 14 * time.Second, ""},
			{"429 for good", []modeltest.Fault{modeltest.QuotaUsedUp}, 1, 0, 0, "you exceeded your current quota"},
			{"529", []modeltest.Fault{modeltest.Overloaded, modeltest.Overloaded, modeltest.Overloaded}, 4, 1750 * time.Millisecond, 3500 * time.Millisecond, ""},
			{"too often", []modeltest.Fault{modeltest.Overloaded, modeltest.Overloaded, modeltest.Overloaded, modeltest.Overloaded}, 4, 1, long, "529 Overloaded: overloaded (tried 4 times)"},
			{"500", []modeltest.Fault{modeltest.ServerError}, 2, 250 * time.Millisecond, 500 * time.Millisecond, ""},
			{"502 with a page", []modeltest.Fault{modeltest.BadGateway}, 2, 250 * time.Millisecond, 500 * time.Millisecond, ""},
			{"a page", []modeltest.Fault{modeltest.WebPage}, 1, 0, 0, "the answer is a web page, not JSON: Welcome to the proxy: is url right"},
			{"401", []modeltest.Fault{modeltest.Unauthorized}, 1, 0, 0, "localhost answers 401 Unauthorized: this key is not known: [secret] (the key is that of the environment variable TEST_KEY)"},
			{"a redirect", []modeltest.Fault{modeltest.Redirected}, 1, 0, 0, "it points to elsewhere.example, which is not followed"},
			{"a cut stream", []modeltest.Fault{modeltest.Cut}, 2, 250 * time.Millisecond, 500 * time.Millisecond, ""},
			{"cut streams", []modeltest.Fault{modeltest.Cut, modeltest.Cut, modeltest.Cut, modeltest.Cut}, 4, 1, long, "the answer broke off (tried 4 times)"},
			{"an error within", []modeltest.Fault{modeltest.ErrorEvent}, 2, 250 * time.Millisecond, 500 * time.Millisecond, ""},
			{"no first byte", []modeltest.Fault{modeltest.Slow}, 2, 60250 * time.Millisecond, 60500 * time.Millisecond, ""},
			{"silence", []modeltest.Fault{modeltest.Stuck}, 2, 30250 * time.Millisecond, 30500 * time.Millisecond, ""},
			{"no end", []modeltest.Fault{modeltest.Huge}, 1, 0, 0, "the answer is larger than 16 MB"},
		} {
			t.Run(wire+" "+test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSetUp(t, Config{Wire: wire})
					s.server.Answer = worded
					s.faults(test.faults...)
					started := time.Now()
					a, err := s.Ask(t.Context(), question(), nil)
					took := time.Since(started)
					if test.err == "" && (err != nil || !a.Value.Set || a.Usage.Requests != test.requests) {
						t.Errorf("%+v, %v", a, err)
					}
					if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err) || !strings.HasPrefix(err.Error(), `model "wise": `)) {
						t.Errorf("%v; want %s", err, test.err)
					}
					if n := len(s.server.Requests()); n != test.requests || took < test.from || took > test.to {
						t.Errorf("%d requests in %v; want %d in %v to %v", n, took, test.requests, test.from, test.to)
					}
				})
			})
		}
	}
}

// TestRetry_NamesTheSetting holds that a refusal of a parameter names the setting that asks for it.
func TestRetry_NamesTheSetting(t *testing.T) {
	const hint = "the setting effort of the model asks for it: leave it out"
	for effort, want := range map[string]bool{"low": true, "": false} {
		s := newSetUp(t, Config{Params: Params{Effort: effort}})
		s.server.Answer = worded
		s.faults(modeltest.RefusesEffort)
		_, err := s.Ask(t.Context(), question(), nil)
		if got := err != nil && strings.Contains(err.Error(), "does not support thinking") && strings.Contains(err.Error(), hint); got != want {
			t.Errorf("with effort %q: %v", effort, err)
		}
	}
}

// TestRetry_LongerForSlowModels holds that a model that is given long may be silent for longer.
func TestRetry_LongerForSlowModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			fault modeltest.Fault
			want  time.Duration
		}{{modeltest.Slow, 5 * time.Minute}, {modeltest.Stuck, 150 * time.Second}} {
			s := newSetUp(t, Config{Timeout: 10 * time.Minute, Tries: 1})
			s.faults(test.fault)
			started := time.Now()
			if _, err := s.Ask(t.Context(), question(), nil); err == nil || time.Since(started) != test.want {
				t.Errorf("%v after %v", err, time.Since(started))
			}
		}
	})
}

// TestRetry_UnstreamedAfterSilentStream holds that a stream that ends without a word is asked for at
// once, which brings the error to light.
func TestRetry_UnstreamedAfterSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{})
		s.faults(modeltest.Mute, modeltest.Mute)
		a, err := s.Ask(t.Context(), question(), nil)
		if err != nil || a.Usage.Mode != modeTools || a.Usage.Requests != 3 {
			t.Errorf("%+v, %v", a, err)
		}
		r := s.server.Requests()
		if len(r) != 3 || !r[0].Stream || r[1].Stream || !r[2].Stream || len(s.warned) != 1 || !strings.Contains(s.warned[0], "invalid JSON schema in format") {
			t.Errorf("%d requests, warned %q", len(r), s.warned)
		}
	})
}

// TestRetry_NotBeyondDeadline holds that no one waits for a try that could not be answered.
func TestRetry_NotBeyondDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{})
		s.faults(modeltest.TooManyRequests)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		started := time.Now()
		_, err := s.Ask(ctx, question(), nil)
		if err == nil || !strings.Contains(err.Error(), "slow down (not tried again: it would have to wait 7s, which is too long)") || time.Since(started) != 0 {
			t.Errorf("%v after %v", err, time.Since(started))
		}
	})
}

// TestRetry_CancelledMeanwhile holds that the wait ends with the context, and the reason is told.
func TestRetry_CancelledMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{})
		s.faults(modeltest.TooManyRequests)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := s.Ask(ctx, question(), nil)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "429 Too Many Requests") {
			t.Error(err)
		}
	})
}

func TestRetry_IdempotencyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{})
		s.faults(modeltest.Overloaded, modeltest.RefusesSchema)
		q := question()
		if _, err := s.Ask(t.Context(), q, nil); err != nil {
			t.Fatal(err)
		}
		q.Key = "čontext/1.1"
		if _, err := s.Ask(t.Context(), q, nil); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, r := range s.server.Requests() {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
		}
		if !strings.HasPrefix(keys[0], "main/1.1-") || keys[0] != keys[1] || keys[1] == keys[2] || keys[2][:9] != keys[0][:9] {
			t.Errorf("%q: want the same for a try, and another for another mode", keys)
		}
		if strings.ContainsFunc(keys[3], func(r rune) bool { return r > '~' }) || keys[3] == "" {
			t.Errorf("%q is no value of a header", keys[3])
		}
	})
}

func TestRetryAfter(t *testing.T) {
	at := time.Now().Add(time.Minute)
	for _, test := range []struct {
		name, value string
		from, to    time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second, 3 * time.Second},
		{"Retry-After", "0.5", time.Second / 2, time.Second / 2},
		{"Retry-After-Ms", "40", 40 * time.Millisecond, 40 * time.Millisecond},
		{"Retry-After", at.UTC().Format(http.TimeFormat), 50 * time.Second, time.Minute},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		{"Retry-After", "-1", -1, -1},
		{"Retry-After", "soon", -1, -1},
		{"Retry-After", "NaN", -1, -1},
		{"Retry-After", "1e300", -1, -1},
		{"X", "1", -1, -1},
	} {
		if got := retryAfter(0, http.Header{test.name: {test.value}}); got < test.from || got > test.to {
			t.Errorf("%s: %s: %v; want %v to %v", test.name, test.value, got, test.from, test.to)
		}
	}
}

// TestRetryAfter_Limits reads when the limits of a provider begin anew, in the forms that there are.
func TestRetryAfter_Limits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour) // a bubble begins in the year 2000
		now := time.Now()
		at := func(after time.Duration) string { return now.Add(after).UTC().Format(time.RFC3339) }
		for _, test := range []struct {
			header map[string]string
			want   time.Duration
		}{
			{map[string]string{"x-ratelimit-reset-requests": "6m0s"}, 6 * time.Minute},
			{map[string]string{"x-ratelimit-reset-tokens": "7.66s"}, 7660 * time.Millisecond},
			{map[string]string{"x-ratelimit-reset-tokens": "120ms", "x-ratelimit-remaining-tokens": "0"}, 120 * time.Millisecond},
			{map[string]string{"x-ratelimit-reset-requests": "1d2h"}, 26 * time.Hour},
			{map[string]string{"x-ratelimit-reset-requests": "10"}, 10 * time.Second},
			{map[string]string{"x-ratelimit-reset": fmt.Sprint(now.Unix() + 9)}, 9 * time.Second},
			{map[string]string{"x-ratelimit-reset": fmt.Sprint(now.UnixMilli() + 1500)}, 1500 * time.Millisecond},
			{map[string]string{"ratelimit-reset": "3"}, 3 * time.Second},
			{map[string]string{"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m"}, 6 * time.Minute},
			{map[string]string{"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "6m", "x-ratelimit-remaining-tokens": "99"}, time.Second},
			{map[string]string{"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "7"}, -1},
			{map[string]string{"anthropic-ratelimit-requests-reset": at(5 * time.Second), "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-tokens-reset": at(time.Hour), "anthropic-ratelimit-tokens-remaining": "5"}, 5 * time.Second},
			{map[string]string{"anthropic-ratelimit-output-tokens-reset": at(8 * time.Second)}, 8 * time.Second},
			{map[string]string{"anthropic-ratelimit-tokens-reset": at(-time.Hour)}, 0},
			{map[string]string{"x-ratelimit-reset-tokens": "6m", "retry-after": "2"}, 2 * time.Second},
			{map[string]string{"x-ratelimit-reset-tokens": "soon"}, -1},
			{map[string]string{"x-ratelimit-reset-tokens": "-5"}, -1},
			{map[string]string{"x-ratelimit-reset-tokens": "1e300"}, -1},
			{map[string]string{"x-ratelimit-reset-tokens": ""}, -1},
			{map[string]string{"x-ratelimit-limit-tokens": "6000"}, -1},
		} {
			h := http.Header{}
			for name, value := range test.header {
				h.Set(name, value)
			}
			if got := retryAfter(http.StatusTooManyRequests, h); got != test.want {
				t.Errorf("%v: %v; want %v", test.header, got, test.want)
			}
			if h.Del("Retry-After"); retryAfter(http.StatusInternalServerError, h) != -1 {
				t.Errorf("%v: it waits for limits after another error", test.header)
			}
		}
	})
}

// TestRetry_Statuses holds which statuses are tried again.
func TestRetry_Statuses(t *testing.T) {
	again := map[int]bool{408: true, 409: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true, 507: true, 529: true, 530: true}
	for status := 520; status <= 526; status++ {
		again[status] = true
	}
	for status := 400; status < 600; status++ {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			c, err := NewClient(Config{Name: "wise", Model: "m", URL: "http://localhost/v1", Mode: modeText}, Options{Transport: statuses(func() int {
				if asked++; asked == 1 {
					return status
				}
				return http.StatusOK
			})})
			if err != nil {
				t.Fatal(err)
			}
			if a, err := c.Ask(t.Context(), question(), nil); (err == nil) != again[status] || again[status] != (asked == 2) {
				t.Errorf("%d: %+v, %v after %d requests", status, a, err, asked)
			}
		})
	}
}

// statuses is a transport that answers with the status that a function returns.
type statuses func() int

// RoundTrip implements [http.RoundTripper].
func (s statuses) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s(), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(whole(`{"content":"1"}`))), Request: r}, nil
}

func TestWaitBefore(t *testing.T) {
	for tries := 1; tries < 100; tries++ {
		most := min(longestWait, firstWait<<min(tries-1, 10))
		for range 20 {
			if got := waitBefore(tries, -1); got < most/2 || got > most {
				t.Fatalf("after %d tries: %v; want %v to %v", tries, got, most/2, most)
			}
		}
	}
	if got := waitBefore(1, 0); got != 0 {
		t.Errorf("the provider says at once, and it waits %v", got)
	}
}

// refusing is a transport that can't connect.
type refusing struct{ tries atomic.Int32 }

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	if r.tries.Add(1) < 3 {
		return nil, fmt.Errorf("connection refused at %s", testKey)
	}
	return nil, &tls.CertificateVerificationError{Err: errors.New("signed by an unknown authority")}
}

// TestRetry_Connections holds that a connection that fails is tried again, but not a certificate that
// is not trusted, and that errors have no secret.
func TestRetry_Connections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{}
		c, err := NewClient(Config{Name: "wise", Provider: "openai", Model: "m"}, Options{Env: testEnv, Transport: r})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Ask(t.Context(), question(), nil)
		if err == nil || !strings.Contains(err.Error(), "signed by an unknown authority") || r.tries.Load() != 3 {
			t.Errorf("%v after %d tries", err, r.tries.Load())
		}
		if _, failed := errors.AsType[*plan.Failure](err); failed {
			t.Error("a plan may handle a certificate that is not trusted")
		}
		r.tries.Store(-10)
		_, err = c.Ask(t.Context(), question(), nil)
		if err == nil || !strings.Contains(err.Error(), `model "wise": connection refused at [secret] (tried 4 times)`) {
			t.Error(err)
		}
		if failure, ok := errors.AsType[*plan.Failure](err); !ok || failure.Fields["code"] != "unavailable" {
			t.Errorf("a plan can't handle it: %#v", err)
		}
	})
}

// TestRetry_CertificateIsChecked asks a server whose certificate nobody trusts.
func TestRetry_CertificateIsChecked(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c, err := NewClient(Config{Name: "wise", URL: server.URL, Model: "m"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(t.Context(), question(), nil); err == nil || !strings.Contains(err.Error(), "certificate") || asked.Load() != 0 {
		t.Errorf("%v, and %d requests", err, asked.Load())
	}
}

// TestSecrets_OfEnvironmentAlone holds that a key that is not set is told of, before a request is
// sent, and that it is read when it is first needed.
func TestSecrets_OfEnvironmentAlone(t *testing.T) {
	s := modeltest.NewTransport(t)
	var read []string
	set := ""
	options := Options{Transport: s, Env: func(name string) (string, bool) {
		read = append(read, name)
		return set, set != ""
	}}
	c, err := NewClient(Config{Name: "wise", Provider: "openai", Model: "m", Headers: []Header{{Name: "X-Team", Env: "TEAM"}, {Name: "X-Title", Value: "t"}}}, options)
	if err != nil || len(read) != 0 {
		t.Fatalf("%v, read %q", err, read)
	}
	_, err = c.Ask(t.Context(), question(), nil)
	if err == nil || err.Error() != `model "wise": the environment variable OPENAI_API_KEY is not set: it is to hold the key` || len(s.Requests()) != 0 {
		t.Errorf("%v, %d requests", err, len(s.Requests()))
	}
	set = " both \n"
	if _, err := c.Ask(t.Context(), question(), nil); err != nil {
		t.Fatal(err)
	}
	h := s.Requests()[0].Header
	if h.Get("Authorization") != "Bearer both" || h.Get("X-Team") != "both" || h.Get("X-Title") != "t" {
		t.Errorf("%v", h)
	}
}

// TestSecrets_Echoed holds that a key does not come back in what a server says of it, whatever form
// it has there.
func TestSecrets_Echoed(t *testing.T) {
	var said string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(said))
	}))
	defer server.Close()
	c, err := NewClient(Config{Name: "wise", URL: server.URL, Model: "m", Key: "TEST_KEY"}, Options{Env: testEnv})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"raw":              "key " + testKey + "!",
		"JSON":             `{"error":{"message":"key sk-\"te\\st\"/+key<é>&$1!"}}`,
		"JSON for HTML":    `{"error":{"message":"key sk-\"te\\st\"\/+key\u003cé\u003e\u0026$1!"}}`,
		"JSON within":      `{"error":{"inner":"key sk-\"te\\st\"\/+key\u003c\u00e9\u003E\u0026$1!"}}`,
		"JSON cut":         `{"error":{"message":"key sk-\"te\\st\"/+key<é>&$1!`,
		"an address":       `see https://x/?key=sk-%22te%5Cst%22%2F%2Bkey%3C%C3%a9%3E%26%241!`,
		"beyond the bound": strings.Repeat("x", maxSaid-10) + testKey,
	} {
		said = text
		_, err := c.Ask(t.Context(), question(), nil)
		if err == nil || strings.Contains(err.Error(), "te\\st") || strings.Contains(err.Error(), "te%5Cst") || strings.Contains(err.Error(), "sk-") {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(err.Error(), "403 Forbidden") || name != "beyond the bound" && !strings.Contains(err.Error(), scrubbed+"!") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := c.Scrub("a " + testKey + " b"); got != "a "+scrubbed+" b" {
		t.Errorf("%q", got)
	}
}

// TestSecrets_InAnswers holds that a model that is shown its key does not hand it on.
func TestSecrets_InAnswers(t *testing.T) {
	s := newSetUp(t, Config{})
	s.server.Answer = func(*modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Value: map[string]any{"a": "it is " + testKey, "b": testKey}}
	}
	a, err := s.Ask(t.Context(), question(), nil)
	if err != nil || strings.Contains(fmt.Sprint(a.Value, a.Text), "+key") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name   string
		config Config
		asked  int
		want   string // seconds after which the requests came
	}{
		{"requests", Config{RPM: 2}, 5, "[0 0 60 60 120]"},
		{"tokens", Config{TPM: 300}, 5, "[0 0 60 60 120]"}, // 120 each, and less as a guess
		{"more than there may be", Config{TPM: 10}, 3, "[0 60 120]"},
		{"none", Config{}, 3, "[0 0 0]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetUp(t, test.config)
			started := time.Now()
			var mu sync.Mutex
			var came []int
			s.server.Answer = func(r *modeltest.Request) modeltest.Reply {
				mu.Lock()
				defer mu.Unlock()
				came = append(came, int(time.Since(started).Seconds()))
				return worded(r)
			}
			for range test.asked {
				if _, err := s.Ask(t.Context(), question(), nil); err != nil {
					t.Error(err)
				}
			}
			if got := fmt.Sprint(came); got != test.want {
				t.Errorf("%s: %s; want %s", test.name, got, test.want)
			}
		})
	}
}

// TestLimits_AreOfTheProcess holds that clients of the same model share its limits, and that no more
// requests are under way than it allows.
func TestLimits_AreOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modeltest.NewTransport(t)
		var now, most atomic.Int32
		s.Answer = func(r *modeltest.Request) modeltest.Reply {
			n := now.Add(1)
			defer now.Add(-1)
			for {
				old := most.Load()
				if n <= old || most.CompareAndSwap(old, n) {
					break
				}
			}
			time.Sleep(time.Second)
			return worded(r)
		}
		limits := &Limits{}
		var wait sync.WaitGroup
		for range 4 {
			c, err := NewClient(Config{Name: "wise", URL: s.URL, Model: "m", Concurrency: 3}, Options{Transport: s, Limits: limits})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				wait.Go(func() {
					if _, err := c.Ask(t.Context(), question(), nil); err != nil {
						t.Error(err)
					}
				})
			}
		}
		started := time.Now()
		wait.Wait()
		if most.Load() != 3 || time.Since(started) != 4*time.Second {
			t.Errorf("%d at once, in %v", most.Load(), time.Since(started))
		}
	})
}

// TestLimits_Cancelled holds that one who gives up while waiting leaves his place to others.
func TestLimits_Cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{RPM: 1, Concurrency: 2})
		s.server.Answer = worded
		ask := func(ctx context.Context) error {
			_, err := s.Ask(ctx, question(), nil)
			return err
		}
		if err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "while it waited for its turn") {
				t.Error(err)
			}
			cancel()
		}
		if err := ask(t.Context()); err != nil || len(s.server.Requests()) != 2 {
			t.Errorf("%v, %d requests", err, len(s.server.Requests()))
		}
	})
}

// TestSecrets_OneBeginsWithAnother holds that no tail of a longer key is left.
func TestSecrets_OneBeginsWithAnother(t *testing.T) {
	for range 20 { // whatever the order of a map is
		s := &scrubber{}
		s.add("sk-secret", "sk-secret-and-more")
		if got := s.echo("it is sk-secret-and-more, and sk-secret"); got != "it is "+scrubbed+", and "+scrubbed {
			t.Fatalf("%q", got)
		}
	}
}

// TestSecrets_InPieces holds that a key is found wherever a stream cuts it, and that the rest comes
// through.
func TestSecrets_InPieces(t *testing.T) {
	s := &scrubber{}
	s.add("sk-secret-key")
	text := "before é sk-secret-key after é"
	for cut := range len(text) {
		var got strings.Builder
		stream := s.stream(func(piece string) { got.WriteString(piece) })
		stream.write(text[:cut])
		stream.write(text[cut:])
		stream.flush()
		if got.String() != "before é "+scrubbed+" after é" {
			t.Errorf("cut at %d: %q", cut, got.String())
		}
	}
}

// TestSecrets_InNames holds that what a provider calls its model and its end is no way out for a key.
func TestSecrets_InNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		key, _ := json.Marshal(r.Header.Get("Authorization") + strings.Repeat("x", 500))
		_, _ = fmt.Fprintf(w, `{"model":%s,"choices":[{"finish_reason":%s,"message":{"content":"{\"a\":1}"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, key, key)
	}))
	defer server.Close()
	c, err := NewClient(Config{Name: "wise", URL: server.URL, Model: "m", Key: "TEST_KEY"}, Options{Env: testEnv})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Ask(t.Context(), question(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{a.Usage.Served, a.Usage.Finish} {
		if strings.Contains(name, "sk-") || !strings.Contains(name, scrubbed) || len(name) > 110 {
			t.Errorf("%q", name)
		}
	}
}
