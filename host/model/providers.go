package model

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/engine/spell"
	"obelus/host/model/fit"
)

// The wires: the formats of the messages between a client and a provider.
const (
	wireOpenAI    = "openai"    // Chat Completions
	wireAnthropic = "anthropic" // Messages
)

// The ways to give a model the schema of its answer, from the strictest down.
const (
	modeSchema = "schema" // the provider holds the model to it
	modeLoose  = "loose"  // as modeSchema, to the loose form of a plan's schema
	modeTools  = "tools"  // it is the parameters of a function that the model must call
	modeJSON   = "json"   // the provider holds the model to JSON; the schema is in the prompt
	modeText   = "text"   // the schema is in the prompt
	modeAuto   = "auto"   // the strictest that the provider has
)

// preset holds the settings that a provider's name stands for.
type preset struct {
	url, key, wire, dialect string
	window                  int // tokens, 0 if it depends on the model
}

// commonWindow is the number of tokens that the models of the large providers take at least.
const commonWindow = 128_000

// presets are the known providers. All of them hold models to schemas, or say that they do.
var presets = map[string]preset{
	"openai":     {"https://api.openai.com/v1", "OPENAI_API_KEY", wireOpenAI, "openai", commonWindow},
	"anthropic":  {"https://api.anthropic.com", "ANTHROPIC_API_KEY", wireAnthropic, "anthropic", commonWindow},
	"gemini":     {"https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", wireOpenAI, "gemini", commonWindow},
	"ollama":     {"http://127.0.0.1:11434/v1", "", wireOpenAI, "ollama", 0},
	"vllm":       {"http://127.0.0.1:8000/v1", "", wireOpenAI, "plain", 0},
	"llama":      {"http://127.0.0.1:8080/v1", "", wireOpenAI, "llama", 0},
	"openrouter": {"https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", wireOpenAI, "plain", commonWindow},
	"azure":      {"", "AZURE_OPENAI_API_KEY", wireOpenAI, "openai", commonWindow},
}

// Providers returns the names of the known providers, sorted.
func Providers() []string { return slices.Sorted(maps.Keys(presets)) }

var (
	wires   = []string{wireAnthropic, wireOpenAI}
	modes   = []string{modeAuto, modeSchema, modeTools, modeJSON, modeText}
	efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
)

// variable is a name that an environment variable can have.
var variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// WithDefaults returns the settings with what their provider stands for filled in, and the defaults
// that a request needs.
func (c Config) WithDefaults() Config {
	p := presets[c.Provider]
	for _, field := range []struct {
		to     *string
		values [2]string
	}{
		{&c.URL, [2]string{p.url}},
		{&c.Wire, [2]string{p.wire, wireOpenAI}},
		{&c.Dialect, [2]string{p.dialect, "plain"}},
		{&c.Mode, [2]string{modeAuto}},
	} {
		for _, value := range field.values {
			if *field.to == "" {
				*field.to = value
			}
		}
	}
	if c.Key == "" && (p.url == "" || c.URL == p.url) { // a provider's key goes nowhere else
		c.Key = p.key
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = DefaultMaxTokens
	}
	if c.Tries == 0 {
		c.Tries = 4
	}
	if c.Window == 0 {
		c.Window = p.window
	}
	return c
}

// dialect returns the dialect of the model's provider, with the largest schema that the settings
// allow; ok is false for one that is not known.
func (c Config) dialect() (d fit.Dialect, ok bool) {
	d, ok = fit.DialectOf(c.WithDefaults().Dialect)
	if c.MaxSchema > 0 {
		d.MaxSize = c.MaxSchema
	}
	return d, ok
}

// Check returns an error with all the faults in the settings of a model, and nil if a client can be
// made of them.
func (c Config) Check() error {
	var errs []error
	say := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("model %q: %s", c.Name, fmt.Sprintf(format, args...)))
	}
	known := func(field, value string, names []string) {
		if value != "" && !slices.Contains(names, value) {
			say("there is no %s %q%s: it is one of %s", field, value, spell.DidYouMean(value, names), strings.Join(names, ", "))
		}
	}
	known("provider", c.Provider, Providers())
	known("wire", c.Wire, wires)
	known("dialect", c.Dialect, fit.Dialects())
	known("mode", c.Mode, modes)
	known("effort", c.Effort, efforts)
	full := c.WithDefaults()
	if full.Mode == modeJSON && full.Wire == wireAnthropic {
		say("mode json is not there over the wire of anthropic: use tools or text")
	}
	if full.Model == "" {
		say("model is missing: the name by which the provider knows it")
	}
	if !variable().MatchString(c.Key) && c.Key != "" {
		say("key names an environment variable, as in OPENAI_API_KEY; the key itself does not belong here")
	}
	for _, h := range c.Headers {
		if h.Env != "" && !variable().MatchString(h.Env) {
			say("the header %s names an environment variable that cannot be: the value itself does not belong here", h.Name)
		}
	}
	if message := full.checkURL(); message != "" {
		say("%s", message)
	}
	for _, message := range full.checkNumbers() {
		say("%s", message)
	}
	return errors.Join(errs...)
}

// checkURL returns the fault of the address; empty if it has none.
func (c Config) checkURL() string {
	if c.URL == "" {
		if c.Provider == "azure" {
			return "url is missing: azure has one for each resource, such as https://NAME.openai.azure.com/openai/v1"
		}
		if c.Provider != "" {
			return "" // the provider is not known, which is said
		}
		return "provider or url is missing: where is the model?"
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "url is not an address such as https://api.openai.com/v1"
	case u.User != nil:
		return "url holds a name or a password: name an environment variable as key in its place"
	case u.Scheme == "http" && !c.Insecure && !isLoopback(u.Hostname()):
		return fmt.Sprintf("url begins with http://, so that key and data would go to %s in the open: use https://, or say insecure = true", u.Host)
	}
	return ""
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// checkNumbers returns the faults of bounds and figures.
func (c Config) checkNumbers() (wrong []string) {
	for _, n := range []struct {
		name  string
		value int
	}{
		{"max_tokens", c.MaxTokens}, {"tries", c.Tries}, {"concurrency", c.Concurrency}, {"rpm", c.RPM}, {"tpm", c.TPM},
		{"batch", c.Batch}, {"window", c.Window}, {"max_schema", c.MaxSchema}, {"timeout", int(c.Timeout)},
	} {
		if n.value < 0 {
			wrong = append(wrong, n.name+" is negative")
		}
	}
	if p := c.Price; p != nil && min(p.Input, p.Output, p.CacheRead, p.CacheWrite) < 0 {
		wrong = append(wrong, "price is negative")
	}
	if c.Wire == wireAnthropic && thinks(c.Effort) {
		if c.Temperature != nil || c.TopP != nil {
			wrong = append(wrong, "effort makes the model think, and anthropic takes no temperature or top_p then: leave out one of them")
		}
		if budget, ok := thinkingBudget(c.Model, c.Effort, c.MaxTokens); ok && budget >= c.MaxTokens {
			wrong = append(wrong, fmt.Sprintf("max_tokens = %d leaves no room for an answer after thinking, which takes at least %d", c.MaxTokens, minThinking))
		}
	}
	return wrong
}
