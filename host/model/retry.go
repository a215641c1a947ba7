package model

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"obelus/engine/plan"
	"obelus/host/model/fit"
)

// maxError bounds the bytes that are read of an answer that is an error, and maxSaid the bytes that
// are shown of it.
const (
	maxError = 64 << 10
	maxSaid  = 600
)

// failure is a request that brought no answer.
type failure struct {
	err         error
	status      int
	said        string        // by the provider, without secrets
	again       bool          // another try may help
	after       time.Duration // that the provider asks to wait; negative if it does not
	begun       bool          // the provider had begun to answer, which it may charge for
	emptyStream bool          // the stream ended in order and without a word
	late        bool          // the time of the question was over before the answer came
}

// describeLate returns the error of a request for whose answer the question left no more time than
// it took.
func (c *Client) describeLate(took time.Duration, begun bool) error {
	from, took := c.excerpt(c.config.URL), took.Round(time.Second/10)
	if begun {
		return &plan.LateError{Message: fmt.Sprintf("the answer from %s was not complete within %v: a slow model needs a larger timeout", from, took)}
	}
	return &plan.LateError{Message: fmt.Sprintf("no answer from %s within %v: is the server at work, and url right? A slow model needs a larger timeout", from, took)}
}

func failed(err error, again bool) *failure { return &failure{err: err, again: again, after: -1} }

// timeouts are how long a provider may keep silent.
type timeouts struct{ first, silence time.Duration }

// timeoutsOf returns 60 s for the first byte and 30 s between two: more for a model that is given
// more than two minutes for a question.
func timeoutsOf(c Config) timeouts {
	return timeouts{max(time.Minute, c.Timeout/2), max(30*time.Second, c.Timeout/4)}
}

// send sends a prompt, again if it fails and that may help, and counts each request.
func (c *Client) send(ctx context.Context, p *prompt, meter *plan.Meter, used *plan.Usage) (*reply, *failure) {
	key, err := c.key()
	if err != nil {
		return nil, failed(err, false)
	}
	body, err := c.encodeBody(p)
	if err != nil {
		return nil, failed(err, false)
	}
	var before error // of the try before
	for try := 1; ; try++ {
		began := time.Now()
		r, f := c.sendOnce(ctx, p, key, body, meter, used)
		if f == nil {
			return r, nil
		}
		if f.late {
			f.err = c.describeLate(time.Since(began), f.begun)
			if before != nil {
				f.err = fmt.Errorf("%w; the try before: %w", f.err, before)
			}
		}
		if f.emptyStream && !p.unstreamed { // some servers can give a reason in no other way
			p.unstreamed = true
			if body, err = c.encodeBody(p); err != nil {
				return nil, failed(err, false)
			}
		}
		if !f.again || ctx.Err() != nil || f.refusesMode(p.mode) != "" {
			return nil, f
		}
		if try >= c.config.Tries {
			if try > 1 {
				f.err = fmt.Errorf("%w (tried %d times)", f.err, try)
			}
			return nil, f
		}
		wait := waitBefore(try, f.after)
		if deadline, ok := ctx.Deadline(); wait > longestAsked || ok && time.Until(deadline) < wait {
			f.err = fmt.Errorf("%w (not tried again: it would have to wait %v, which is too long)", f.err, wait.Round(time.Second/10))
			return nil, f
		}
		before = f.err
		if err := sleep(ctx, wait); err != nil {
			return nil, failed(fmt.Errorf("%w (while it waited to try again: %w)", f.err, err), false)
		}
	}
}

// sendOnce sends one request once the budget and the limits allow it, and counts it. One that waits
// for the budget of its run takes no turn from other runs.
func (c *Client) sendOnce(ctx context.Context, p *prompt, key string, body []byte, meter *plan.Meter, used *plan.Usage) (*reply, *failure) {
	settle, err := meter.Reserve(ctx, c.mostUsage(p, body))
	if err != nil {
		return nil, budgetFailure(err)
	}
	release, err := c.limiter.acquire(ctx, estimate(len(body)))
	if errors.Is(err, context.DeadlineExceeded) {
		err = &plan.LateError{Message: "its time was over: the model's concurrency, rpm and tpm bound its requests"}
	}
	if err != nil {
		settle(plan.Usage{Model: c.config.Name})
		return nil, failed(fmt.Errorf("while it waited for its turn: %w", err), false)
	}
	started := time.Now()
	shown := c.secrets.stream(meter.Delta)
	r := &reply{delta: shown.write}
	f := c.exchange(ctx, p, key, body, r)
	shown.flush()
	meter.Delta("")
	r.served, r.finish = cutName(c.excerpt(r.served)), cutName(c.excerpt(r.finish))
	var u plan.Usage
	if f == nil || f.begun || r.written() > 0 || r.usage.known {
		u = r.usageOf(&c.config, len(body), p.params.MaxTokens)
	}
	u.Requests, u.Model, u.Mode, u.Request, u.Took = 1, c.config.Name, p.mode, p.key, time.Since(started)
	u.MS = float64(u.Took.Microseconds()) / 1000
	release(u.Input + u.Output)
	settle(u)
	used.Add(u)
	return r, f
}

// budgetFailure returns the failure of a request that the budget does not allow, or not in time.
func budgetFailure(err error) *failure {
	if errors.Is(err, context.DeadlineExceeded) {
		err = &plan.LateError{Message: "its time was over: other requests hold what is left of the run's budget"}
	}
	if _, isFault := err.(*plan.Fault); !isFault {
		err = fmt.Errorf("while it waited for its turn: %w", err)
	}
	return failed(err, false)
}

// cutName cuts a name that a provider gives for the journal.
func cutName(name string) string {
	const most = 100
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

// encodeBody returns the body of a request, with the extra of the settings.
func (c *Client) encodeBody(p *prompt) ([]byte, error) {
	b := merge(c.wire.body(p), c.config.Extra)
	if p.unstreamed {
		b = merge(b, map[string]any{"stream": false})
	}
	if b.Get("stream") == false { // its options are refused then
		p.unstreamed = true
		b = slices.DeleteFunc(b, func(m fit.Member) bool { return m.Name == "stream_options" })
	}
	text, err := fit.JSON(b)
	if err != nil {
		return nil, fmt.Errorf("the request is not JSON: %w", err)
	}
	return text, nil
}

var (
	errFirstByte = errors.New("the provider did not begin to answer")
	errSilence   = errors.New("the provider stopped in the middle of the answer")
)

// exchange sends one request and reads the answer into r.
func (c *Client) exchange(ctx context.Context, p *prompt, key string, body []byte, r *reply) *failure {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(within, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return failed(errors.New("the address of the model can't be used"), false)
	}
	if err := c.fillHeader(request.Header, key, c.idempotencyKey(p, body)); err != nil {
		return failed(err, false)
	}
	first := c.timeouts.first
	if p.unstreamed { // nothing comes before all is there
		first = max(first, plan.DefaultModelTimeout)
	}
	watch := time.AfterFunc(first, func() { cancel(fmt.Errorf("%w within %v", errFirstByte, first)) })
	defer watch.Stop()
	response, err := c.http.Do(request)
	if err != nil {
		return c.networkFailure(within, err, false)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return c.statusFailure(response)
	}
	silence := time.AfterFunc(time.Hour, func() {
		cancel(fmt.Errorf("%w: nothing came for %v", errSilence, c.timeouts.silence))
	})
	defer silence.Stop()
	silence.Stop()
	watched := &watchedReader{response.Body, func() {
		watch.Stop()
		silence.Reset(c.timeouts.silence)
	}}
	answer := &bounded{watched, maxBody}
	f := c.read(answer, r)
	r.received = maxBody - answer.left
	if f != nil && within.Err() != nil {
		return c.networkFailure(within, f.err, true)
	}
	if f == nil { // read to its end, the connection serves another request
		silence.Reset(drainTime)
		_, _ = io.CopyN(io.Discard, response.Body, maxDrained)
	}
	return f
}

// How long, and for how many bytes, the end of an answer is awaited that is complete.
const (
	drainTime  = 100 * time.Millisecond
	maxDrained = 4 << 10
)

// watchedReader calls a function whenever something was read.
type watchedReader struct {
	r    io.Reader
	came func()
}

// Read implements [io.Reader].
func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.came()
	}
	return n, err
}

// read reads an answer, streamed or not.
func (c *Client) read(body io.Reader, r *reply) *failure {
	buffered := bufio.NewReader(body)
	first, err := firstCharacter(buffered)
	if err != nil {
		return c.brokenOff(err)
	}
	switch first {
	case '<':
		page, _ := io.ReadAll(io.LimitReader(buffered, maxError))
		return failed(errors.New("the answer is a web page, not JSON: "+c.excerpt(pageTitle(page))+": is url right, and is no proxy in between?"), false)
	case '{', '[':
		text, err := io.ReadAll(buffered)
		if err != nil {
			return c.brokenOff(err)
		}
		err = c.wire.whole(text, r)
		if err == nil && r.finish == "" && r.written() == 0 && len(r.calls) == 0 {
			err = errNoJSON
		}
		return c.readFailure(err)
	}
	events := &eventReader{r: buffered}
	for !r.ended || !r.usage.known { // what tokens were used may come last
		ev, err := events.next()
		if err == io.EOF && r.ended {
			break
		}
		if err != nil {
			if r.ended && err != errTooLarge {
				break
			}
			f := c.brokenOff(err)
			f.emptyStream = err == io.EOF && r.written() == 0
			return f
		}
		if string(ev.data) == "[DONE]" { // on either wire
			break
		}
		if err := c.wire.event(ev, r); err != nil {
			if r.ended { // the answer is whole, whatever follows
				break
			}
			return c.readFailure(err)
		}
	}
	return nil
}

// firstCharacter returns the first byte that is no white space, and leaves it to be read.
func firstCharacter(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(b[0])) {
			return b[0], nil
		}
		if _, err := r.Discard(1); err != nil {
			return 0, err
		}
	}
}

// brokenOff returns the failure of an answer that ended too early, or was too large.
func (c *Client) brokenOff(err error) *failure {
	if errors.Is(err, errTooLarge) {
		f := failed(err, false)
		f.begun = true
		return f
	}
	f := failed(errBroken, true)
	f.begun = true
	return f
}

// readFailure returns the failure for an error of reading an answer; nil for nil.
func (c *Client) readFailure(err error) *failure {
	if err == nil {
		return nil
	}
	f := failed(err, true)
	f.begun = true
	if said := (*providerError)(nil); errors.As(err, &said) {
		f.status = said.status
		f.said = c.excerpt(said.message)
		f.again = said.status == 0 && !permanent[said.code] || retryable(said.status, said.code)
		f.err = errors.New("the provider broke off: " + f.said)
		f.begun = false // which the text tells that may have come
	} else if errors.Is(err, errNoJSON) {
		f.again = false
		f.err = fmt.Errorf("%w: is url right?", err)
	}
	return f
}

// permanent are codes of errors within an answer that another try does not help.
var permanent = map[string]bool{
	"invalid_request_error": true, "authentication_error": true, "permission_error": true, "not_found_error": true,
	"request_too_large": true, "insufficient_quota": true, "billing_error": true, "invalid_api_key": true, "model_not_found": true,
}

// networkFailure returns the failure of a request that the network, a timeout or the caller ended.
func (c *Client) networkFailure(ctx context.Context, err error, begun bool) *failure {
	cause := context.Cause(ctx)
	f := &failure{after: -1, begun: begun, again: true}
	var inURL *url.Error
	switch {
	case errors.Is(cause, errFirstByte) || errors.Is(cause, errSilence):
		f.err = cause
	case errors.Is(cause, context.DeadlineExceeded):
		f.err, f.again, f.late = cause, false, true
	case cause != nil:
		f.err, f.again = fmt.Errorf("while it waited for the answer: %w", cause), false
	case errors.Is(err, syscall.ECONNREFUSED):
		f.err = fmt.Errorf("the connection to %s was refused: is the server at work, and url right?", c.excerpt(c.config.URL))
	case errors.As(err, &inURL):
		f.err = errors.New(c.excerpt(inURL.Err.Error()))
	default:
		f.err = errors.New(c.excerpt(err.Error()))
	}
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) {
		f.again = false
	}
	return f
}

// statusFailure returns the failure of an answer that is an error.
func (c *Client) statusFailure(response *http.Response) *failure {
	status := response.StatusCode
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxError))
	said, code := "", ""
	if e, ok := parseError(text); ok {
		said, code = e.message, e.code
	} else if isPage(text, response.Header) {
		said = "a web page, not JSON: " + pageTitle(text)
	} else {
		said = string(text)
	}
	said = c.excerpt(said)
	message := fmt.Sprintf("%s answers %s", response.Request.URL.Host, statusText(status))
	if said != "" {
		message += ": " + said
	}
	f := failed(errors.New(message+c.hint(status, response.Header, said)), retryable(status, code))
	f.status, f.said, f.after = status, said, retryAfter(status, response.Header)
	return f
}

// statusText returns a status with its name.
func statusText(status int) string {
	if status == 529 {
		return "529 Overloaded"
	}
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// hint ends an error with advice about it. said is the provider's own text.
func (c *Client) hint(status int, h http.Header, said string) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if c.config.Key == "" {
			return " (the model has no key: name its environment variable as key)"
		}
		return fmt.Sprintf(" (the key is that of the environment variable %s)", c.config.Key)
	case status == http.StatusNotFound:
		return fmt.Sprintf(" (is the model %q there, and url right?)", c.config.Model)
	case status == http.StatusBadRequest:
		if setting := c.config.settingIn(said); setting != "" {
			return fmt.Sprintf(" (the setting %s of the model asks for it: leave it out for a model that does not take it)", setting)
		}
	case status >= 300 && status < 400:
		to := "another address"
		if u, err := url.Parse(h.Get("Location")); err == nil && u.Host != "" {
			to = u.Host
		}
		return fmt.Sprintf(" (it points to %s, which is not followed: the key would go there; if that is right, change url)", c.excerpt(to))
	}
	return ""
}

// settingIn returns the setting that a provider's refusal is about, if the configuration has it;
// else empty.
func (c Config) settingIn(said string) string {
	said = strings.ToLower(said)
	for _, of := range []struct {
		setting string
		isSet   bool
		words   []string
	}{
		{"effort", c.Effort != "", []string{"thinking", "reasoning", "effort"}},
		{"temperature", c.Temperature != nil, []string{"temperature"}},
		{"top_p", c.TopP != nil, []string{"top_p"}},
		{"seed", c.Seed != nil, []string{"seed"}},
	} {
		if of.isSet && slices.ContainsFunc(of.words, func(word string) bool { return strings.Contains(said, word) }) {
			return of.setting
		}
	}
	return ""
}

// isPage reports whether an answer is HTML.
func isPage(text []byte, h http.Header) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) || strings.HasPrefix(h.Get("Content-Type"), "text/html")
}

// pageTitle returns the title of a page, or a part of its text.
func pageTitle(page []byte) string {
	lower := bytes.ToLower(page)
	if from := bytes.Index(lower, []byte("<title>")); from >= 0 && len(lower) == len(page) {
		if length := bytes.Index(lower[from:], []byte("</title>")); length > 0 {
			return string(page[from+len("<title>") : from+length])
		}
	}
	return string(page[:min(len(page), 80)])
}

// excerpt returns a provider's text on one line, without secrets, and cut if it is long.
func (c *Client) excerpt(text string) string {
	text = strings.ToValidUTF8(c.secrets.echo(text), "\ufffd")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return text
}

// idempotencyKey returns a key that all tries of a request share. Another request about the same
// call has another key: one that repairs the answer, or gives the schema in another way.
func (c *Client) idempotencyKey(p *prompt, body []byte) string {
	if p.callKey == "" {
		return ""
	}
	sum := sha256.Sum256(body)
	key := p.callKey
	for _, b := range []byte(key) {
		if b <= ' ' || b > '~' {
			whole := sha256.Sum256([]byte(key))
			key = hex.EncodeToString(whole[:16])
			break
		}
	}
	return key + "-" + hex.EncodeToString(sum[:6])
}
