package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"obelus/engine/plan"
)

// Config holds the destination and the content of traces. The zero Config sends nothing.
type Config struct {
	URL     string   `json:"url" short:"true" required:"the address of a collector: url = \"http://127.0.0.1:4318\"" jsonschema:"of the collector, such as \"http://127.0.0.1:4318\""`
	Headers []Header `json:"headers" jsonschema:"of each request"`
	Content bool     `json:"content" jsonschema:"true adds arguments, results and the texts of errors"`
}

// Header is a header of each request. Its value is a text, or the environment variable that has it.
type Header struct {
	Name  string
	Value string `kind:"string" short:"true"`
	Env   string `json:"env" required:"the name of the environment variable that has it: env = \"NAME\"" jsonschema:"the variable of the environment that has it"`
}

// Secrets names the environment variables with values of headers.
func (c Config) Secrets() (names []string) {
	for _, h := range c.Headers {
		if h.Env != "" {
			names = append(names, h.Env)
		}
	}
	return names
}

// Check returns an error for a URL that is none of a collector, and for one to which a secret would
// go in the open.
func (c Config) Check() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("must be the address of a collector, such as http://127.0.0.1:4318")
	case u.User != nil:
		return errors.New("holds a name or a password: name an environment variable as a header in its place")
	case u.Scheme == "http" && len(c.Secrets()) > 0 && !isLoopback(u.Hostname()):
		return fmt.Errorf("begins with http://, so that the header %s would go to %s in the open: use https://", c.secretHeader(), u.Host)
	}
	return nil
}

func (c Config) secretHeader() string {
	for _, h := range c.Headers {
		if h.Env != "" {
			return h.Name
		}
	}
	return ""
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// tracesPath is where a collector takes traces.
const tracesPath = "/v1/traces"

// endpoint returns the address that traces are posted to. A URL may have the path of it already.
func (c Config) endpoint() string {
	at := strings.TrimRight(c.URL, "/")
	if strings.HasSuffix(at, tracesPath) {
		return at
	}
	return at + tracesPath
}

// Sender sends traces to a collector. It is safe for concurrent use.
type Sender struct {
	config Config
	client *http.Client
	pause  time.Duration // before a second try, doubled before a third
}

// Bounds of sending.
const (
	sendTimeout = 10 * time.Second // of one try
	sendTries   = 3
	maxPause    = 10 * time.Second // that a collector may ask for
	maxAnswer   = 64 << 10         // bytes of an answer that are read
	maxReason   = 300              // bytes of an answer that an error has
)

// NewSender returns a sender, or the error of [Config.Check].
func NewSender(c Config) (*Sender, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("%q %w", c.URL, err)
	}
	return &Sender{config: c, pause: time.Second, client: &http.Client{
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it is an error
	}}, nil
}

// minSecret is the least length of a header's value that is kept out of errors.
const minSecret = 8

// Send sends a trace, again where the collector asks for that. Its error has no value of a header.
func (s *Sender) Send(ctx context.Context, t *Trace) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	pause := s.pause
	for try := 1; ; try++ {
		again, after, err := s.post(ctx, body)
		if err == nil || !again || try == sendTries {
			return err
		}
		timer := time.NewTimer(min(max(pause, after), max(maxPause, s.pause)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		pause *= 2
	}
}

// post sends a body once. With an error it returns whether another try may help, and the pause that
// the collector asks for.
func (s *Sender) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	endpoint := s.config.endpoint()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range s.config.Headers {
		value := h.Value
		if h.Env != "" {
			var ok bool
			if value, ok = os.LookupEnv(h.Env); !ok {
				return false, 0, fmt.Errorf("the environment variable %s is not set: it is to hold the header %s", h.Env, h.Name)
			}
		}
		r.Header.Set(h.Name, strings.TrimSpace(value))
	}
	answer, err := s.client.Do(r)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return ctx.Err() == nil, 0, fmt.Errorf("sending to %s: %w", endpoint, err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	for _, values := range r.Header { // a collector may send them back
		for _, value := range values {
			if len(value) >= minSecret {
				text = bytes.ReplaceAll(text, []byte(value), []byte("***"))
			}
		}
	}
	if answer.StatusCode/100 == 2 {
		return false, 0, refusedSpans(endpoint, text)
	}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		after = time.Duration(min(max(seconds, 0), int(maxPause/time.Second))) * time.Second
	}
	return again, after, fmt.Errorf("sending to %s: %s%s", endpoint, answer.Status, reasonOf(text))
}

// reasonOf returns the beginning of an answer, for an error.
func reasonOf(text []byte) string {
	reason := strings.TrimSpace(plan.ValidText(string(text[:min(len(text), maxReason)])))
	if reason == "" {
		return ""
	}
	return ": " + strconv.Quote(reason)
}

// refusedSpans returns an error if a collector has taken a part of a trace alone.
func refusedSpans(endpoint string, text []byte) error {
	var answer struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, or a text
			ErrorMessage  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return nil // it need not answer in JSON
	}
	rejected := strings.Trim(string(answer.PartialSuccess.RejectedSpans), `"`)
	if rejected == "" || rejected == "0" || rejected == "null" {
		return nil
	}
	return fmt.Errorf("sending to %s: it refused %s spans%s", endpoint, rejected, reasonOf([]byte(answer.PartialSuccess.ErrorMessage)))
}
