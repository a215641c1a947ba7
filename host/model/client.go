package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"obelus/engine/plan"
	"obelus/host/model/fit"
	"obelus/store"
)

// Options connect a [Client] to its process.
type Options struct {
	// Env looks up environment variables, for keys: when they are first needed. Nil has none.
	Env func(string) (string, bool)

	// Transport carries requests; nil for one that uses the proxies of the environment.
	Transport http.RoundTripper

	// Warn is told, in a sentence, of what happens against expectation and goes on. It may be nil.
	Warn func(string)

	// Limits are shared by the clients of a process. Nil keeps this client within its own.
	Limits *Limits
}

// Client is an [Asker] that asks one model of a provider. It is safe for concurrent use.
type Client struct {
	config   Config
	options  Options
	wire     wire
	dialect  fit.Dialect
	endpoint string
	http     *http.Client
	limiter  *limiter
	timeouts timeouts
	secrets  scrubber
	ladder   ladder
	window   learned
}

// transport carries the requests of all clients: with the proxies of the environment alone.
var transport = sync.OnceValue(func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	return t
})

// NewClient returns a client for a model of the settings, or the error of [Config.Check].
func NewClient(c Config, o Options) (*Client, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	dialect, ok := c.dialect()
	if !ok {
		return nil, fmt.Errorf("model %q: the dialect %s is not known", c.Name, c.Dialect)
	}
	if o.Limits == nil {
		o.Limits = &Limits{}
	}
	if o.Transport == nil {
		o.Transport = transport()
	}
	client := &Client{config: c, options: o, dialect: dialect, limiter: o.Limits.of(limitKey{c.Name, c.URL, c.Model, c.Concurrency, c.RPM, c.TPM}), timeouts: timeoutsOf(c)}
	client.http = &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // it is an error, see statusFailure
	}}
	switch {
	case c.Wire == wireAnthropic:
		client.wire = anthropic{}
	case c.Provider == "azure":
		client.wire = azureOpenAI{}
	default:
		client.wire = openAI{}
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("model %q: url is no address", c.Name)
	}
	if c.Wire == wireAnthropic { // its path has the version
		u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	}
	client.endpoint = u.JoinPath(client.wire.path()).String()
	client.ladder.start(c)
	return client, nil
}

// Config returns the settings with their defaults.
func (c *Client) Config() Config { return c.config }

// key returns the key of the provider, empty if the model has none.
func (c *Client) key() (string, error) {
	if c.config.Key == "" {
		return "", nil
	}
	key, ok := c.lookup(c.config.Key)
	if !ok {
		return "", fmt.Errorf("the environment variable %s is not set: it is to hold the key", c.config.Key)
	}
	return key, nil
}

// lookup reads a secret of the environment, and from then on it is kept out of all texts.
func (c *Client) lookup(name string) (string, bool) {
	if c.options.Env == nil {
		return "", false
	}
	value, ok := c.options.Env(name)
	value = strings.TrimSpace(value)
	c.secrets.add(value)
	return value, ok && value != ""
}

// Scrub returns a text without the secrets of the model: its key, and the headers that come from
// the environment.
func (c *Client) Scrub(text string) string {
	if c.config.Key != "" {
		c.lookup(c.config.Key)
	}
	for _, h := range c.config.Headers {
		if h.Env != "" {
			c.lookup(h.Env)
		}
	}
	return c.secrets.echo(text)
}

// fillHeader sets the header of a request.
func (c *Client) fillHeader(h http.Header, key, idempotencyKey string) error {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream, application/json")
	h.Set("User-Agent", "obelus")
	if idempotencyKey != "" {
		h.Set("Idempotency-Key", idempotencyKey)
	}
	c.wire.authorize(h, key)
	for _, header := range c.config.Headers {
		value := header.Value
		if header.Env != "" {
			var ok bool
			if value, ok = c.lookup(header.Env); !ok {
				return fmt.Errorf("the environment variable %s is not set: it is to hold the header %s", header.Env, header.Name)
			}
		}
		h.Set(header.Name, value)
	}
	return nil
}

// Ask implements [Asker]. Where the provider does not hold the model to the schema, it is given in
// the next weaker way, for the rest of the process, with a warning.
func (c *Client) Ask(ctx context.Context, r *Request, meter *plan.Meter) (*Answer, error) {
	var used plan.Usage
	for {
		a, err := c.adapt(r)
		if err != nil {
			return nil, err
		}
		p := &a.prompt
		got, f := c.send(ctx, p, meter, &used)
		refused := ""
		if f != nil {
			if refused = f.refusesMode(a.mode); refused == "" {
				return nil, c.failure(f)
			}
		} else if c.ignoresSchema(a, got) {
			refused = "the answer is not JSON, so the provider does not hold the model to the schema"
		}
		if refused == "" {
			return c.answer(a, got, used), nil
		}
		down, err := c.stepDown(r, a.step, refused, f == nil)
		switch {
		case err != nil:
			return nil, err
		case down:
		case f != nil:
			return nil, c.failure(f)
		default:
			return c.answer(a, got, used), nil
		}
	}
}

// codeUnavailable is the code of the failure of a model that another attempt may reach.
const codeUnavailable = "unavailable"

// failure returns the error of a request that brought no answer: a [*plan.Failure] where the same
// request may bring one later. The budget's is returned as it is.
func (c *Client) failure(f *failure) error {
	if _, ok := f.err.(*plan.Fault); ok {
		return f.err
	}
	err := fmt.Errorf("model %q: %w", c.config.Name, f.err)
	if f.again {
		return &plan.Failure{Fields: map[string]any{"message": plan.ValidText(err.Error()), "code": codeUnavailable}}
	}
	return err
}

// adapted is a request as it is sent at one step of the ladder.
type adapted struct {
	prompt
	step step
	undo func(any) (any, error)
	plan bool // the answer is a plan
	free bool // any text is an answer: there is no schema
}

// adapt makes the prompt of a request for the provider.
func (c *Client) adapt(r *Request) (*adapted, error) {
	at := c.ladder.at(r.Purpose)
	a, excess, err := c.adaptTo(r, step{at.mode, at.loose && r.Loose != nil})
	if excess != "" && r.Loose != nil && !a.step.loose && !c.config.Strict {
		c.ladder.warnOnce("size", func() {
			c.warn(excess + ": plans are asked for in a looser form, with arguments as text, and checked afterwards")
		})
		a, _, err = c.adaptTo(r, step{at.mode, true})
	}
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", c.config.Name, err)
	}
	return a, nil
}

// adaptTo makes the prompt of a request at a step. Excess says how the schema is larger than the
// provider takes; it is empty if it is not.
func (c *Client) adaptTo(r *Request, at step) (a *adapted, excess string, err error) {
	form := r
	if at.loose {
		form = r.Loose
	}
	a = &adapted{step: at, plan: r.Purpose == purposePlan, undo: func(v any) (any, error) { return v, nil }}
	a.prompt = prompt{config: &c.config, mode: at.String(), system: form.System, stable: form.Stable, params: c.params(form), key: r.Hash(), callKey: r.Key}
	for i, block := range form.Blocks {
		if block != "" {
			a.blocks = append(a.blocks, block)
		} else if i < form.Stable {
			a.stable--
		}
	}
	if form.Schema == nil {
		a.mode, a.free = modeText, true
	} else if excess, err = c.giveSchema(form, a); err != nil {
		return nil, "", err
	}
	if len(a.blocks) == 0 {
		a.blocks = []string{"Answer."} // there is none without a message
	}
	return a, excess, nil
}

// giveSchema gives the request's schema to the provider, to the model in the prompt, or to both.
func (c *Client) giveSchema(r *Request, a *adapted) (excess string, err error) {
	inPrompt := true
	if a.step.mode == modeSchema || a.step.mode == modeTools {
		d := c.dialect
		d.RootObject = d.RootObject || a.step.mode == modeTools // arguments are an object
		fitted, err := fit.Schema(r.Schema, d)
		if err != nil {
			return "", err
		}
		a.undo, a.schema, excess = fitted.Undo, fitted.Schema, fitted.Excess
		inPrompt = d.InPrompt
	}
	if inPrompt {
		c.showSchema(r, a)
	}
	return excess, nil
}

// showSchema puts the request's schema into the prompt. The schema of a plan stays the same from
// request to request, and goes after the other blocks that do; any other schema goes to the end.
func (c *Client) showSchema(r *Request, a *adapted) {
	block := SchemaBlock(r.Schema)
	if r.Purpose == purposePlan {
		a.blocks = slices.Insert(a.blocks, min(a.stable, len(a.blocks)), block)
		a.stable++
		return
	}
	a.blocks = append(a.blocks, block)
}

// params returns the request's parameters; the settings supply the ones that it lacks.
func (c *Client) params(r *Request) Params {
	p, d := r.Params, c.config.Params
	if p.Temperature == nil {
		p.Temperature = d.Temperature
	}
	if p.TopP == nil {
		p.TopP = d.TopP
	}
	if p.Seed == nil {
		p.Seed = d.Seed
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = d.MaxTokens
	}
	if p.Effort == "" {
		p.Effort = d.Effort
	}
	return p
}

// ignoresSchema reports whether an answer shows that the provider ignored the schema.
func (c *Client) ignoresSchema(a *adapted, r *reply) bool {
	if r.refused || r.cutOff {
		return false
	}
	text, _ := r.answer()
	switch a.mode {
	case modeSchema, modeLoose:
		return !json.Valid([]byte(text))
	case modeTools:
		return len(r.calls) == 0 && !strings.ContainsAny(text, "{[")
	}
	return false
}

// answer converts the provider's reply to an answer.
func (c *Client) answer(a *adapted, r *reply, used plan.Usage) *Answer {
	text, problem := r.answer()
	answer := &Answer{Text: c.secrets.text(text), CutOff: r.cutOff, Loose: a.step.loose, Usage: used}
	if r.refused {
		refusal, _ := r.refusal.text()
		answer.Refusal = strings.TrimSpace(c.secrets.text(refusal))
		if answer.Refusal == "" {
			answer.Refusal = "the model refused (" + r.finish + ")"
			if text := strings.TrimSpace(answer.Text); text != "" {
				answer.Refusal += ": " + c.excerpt(text)
			}
		}
		return answer
	}
	var v any = answer.Text
	switch {
	case problem != nil:
		problem = fmt.Errorf("the answer is no text: %w", problem)
	case !a.free:
		if v, problem = decodeAnswer(answer.Text, a.plan); problem == nil {
			v, problem = a.undo(v)
		}
	}
	if problem != nil {
		answer.Problem = problem.Error()
		return answer
	}
	answer.Value = store.Some(v)
	return answer
}

// warn reports a problem that does not stop the request.
func (c *Client) warn(message string) {
	if c.options.Warn != nil {
		c.options.Warn(fmt.Sprintf("model %q: %s", c.config.Name, message))
	}
}
