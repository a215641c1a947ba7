package model

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/host/model/fit"
)

// wire is how requests and answers look to a provider.
type wire interface {
	// path is where requests go, below the provider's address.
	path() string

	// authorize adds the key, if there is one, and the fields that the wire demands to the header.
	authorize(h http.Header, key string)

	// body is the request as the provider takes it, without the extra of the settings.
	body(p *prompt) fit.Object

	// event reads one event of a streamed answer.
	event(ev event, r *reply) error

	// whole reads an answer that came at once.
	whole(text []byte, r *reply) error
}

// prompt is a request in one of the modes.
type prompt struct {
	config  *Config
	mode    string
	system  string
	blocks  []string // none is empty
	stable  int      // number of blocks that stay the same
	schema  any      // as the provider takes it; nil where only the prompt has it
	params  Params
	key     string // the hash of the request
	callKey string // of the call that it is about

	unstreamed bool // the answer is to come at once
}

// The function that a model calls to answer, in mode tools.
const (
	functionName = "answer"
	functionText = "Gives the answer."
)

// reply is an answer as it is being read.
type reply struct {
	text    strings.Builder
	args    strings.Builder // of the function that is called
	called  string          // its id; not empty once it is called
	refusal strings.Builder
	refused bool
	cutOff  bool
	finish  string // why it ended, in the provider's word
	ended   bool   // nothing is missing
	served  string
	usage   tokens
	delta   func(string)
}

// tokens is the usage of a request by the provider's count.
type tokens struct {
	known                                           bool
	input, output, cacheRead, cacheWrite, reasoning int64
	cost                                            *float64
}

// write adds text to the answer.
func (r *reply) write(text string) {
	if text != "" {
		r.text.WriteString(text)
		r.delta(text)
	}
}

// writeArgs adds text to the arguments of the function.
func (r *reply) writeArgs(text string) {
	if text != "" {
		r.args.WriteString(text)
		r.delta(text)
	}
}

// answer returns the text that is to be the JSON value: the function's arguments if it is called.
func (r *reply) answer() string {
	if r.called == "" {
		return r.text.String()
	}
	if r.args.Len() == 0 {
		return "{}"
	}
	return r.args.String()
}

// merge returns an object with the members of another in it. Objects within both are merged, and
// the other's values replace all else. New members come last, sorted by name.
func merge(o fit.Object, extra map[string]any) fit.Object {
	merged := slices.Clone(o)
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		value := extra[name]
		i := slices.IndexFunc(merged, func(m fit.Member) bool { return m.Name == name })
		if i < 0 {
			merged = append(merged, member(name, value))
			continue
		}
		if more, ok := value.(map[string]any); ok {
			switch old := merged[i].Value.(type) {
			case fit.Object:
				value = merge(old, more)
			case map[string]any:
				value = merge(sortedObject(old), more)
			}
		}
		merged[i].Value = value
	}
	return merged
}

// sortedObject returns a map as a [fit.Object], sorted by name.
func sortedObject(m map[string]any) fit.Object {
	o := make(fit.Object, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		o = append(o, member(name, m[name]))
	}
	return o
}

// providerError is an error that a provider reports.
type providerError struct {
	status  int // of HTTP; 0 where it came within an answer
	code    string
	message string
}

// Error returns the provider's message.
func (e *providerError) Error() string {
	return e.message
}

// parseError reads the error in a body of JSON, in whichever of the usual forms. It reports whether
// there is one.
func parseError(text []byte) (*providerError, bool) {
	var body struct {
		Error   json.RawMessage
		Message json.RawMessage
		Detail  json.RawMessage
	}
	if json.Unmarshal(text, &body) != nil {
		return nil, false
	}
	for _, raw := range []json.RawMessage{body.Error, body.Message, body.Detail} {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var object struct {
			Message, Type string
			Code          any
			Status        any
		}
		if message := ""; json.Unmarshal(raw, &message) == nil {
			return &providerError{message: message}, true
		}
		if json.Unmarshal(raw, &object) != nil || object.Message == "" {
			return &providerError{message: string(raw)}, true
		}
		e := &providerError{code: object.Type, message: object.Message}
		switch code := object.Code.(type) {
		case string:
			e.code = code
		case float64:
			e.status = int(code)
		}
		return e, true
	}
	return nil, false
}

// Ways in which an answer can be no answer.
var (
	errBroken = errors.New("the answer broke off")
	errNoJSON = errors.New("the answer is not what the provider's interface promises")
)

// usageOf returns the usage of one request for the meter. Where the provider gives no counts, they
// are estimated: a token for each 4 bytes.
func (r *reply) usageOf(c *Config, sentBytes int) plan.Usage {
	u := plan.Usage{Served: r.served, Finish: r.finish, Input: r.usage.input, Output: r.usage.output,
		CacheRead: r.usage.cacheRead, CacheWrite: r.usage.cacheWrite, Reasoning: r.usage.reasoning}
	written := r.text.Len() + r.args.Len() + r.refusal.Len()
	if !r.usage.known || u.Input == 0 {
		u.Input, u.Estimated = max(u.Input, estimate(sentBytes)), true
	}
	if (!r.usage.known || u.Output == 0) && written > 0 {
		u.Output, u.Estimated = max(u.Output, estimate(written)), true
	}
	u.Cost = r.usage.cost
	if c.Price != nil {
		cost := c.Price.cost(u)
		u.Cost = &cost
	}
	return u
}

// estimate returns about how many tokens a text has.
func estimate(bytes int) int64 { return int64((bytes + 3) / 4) }

// cost returns the cost of tokens, in US dollars. Where the cache has no price, the price of the
// input applies.
func (p *Price) cost(u plan.Usage) float64 {
	read, write := p.CacheRead, p.CacheWrite
	if read == 0 {
		read = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	plain := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	return (float64(plain)*p.Input + float64(u.CacheRead)*read + float64(u.CacheWrite)*write + float64(u.Output)*p.Output) / 1e6
}
