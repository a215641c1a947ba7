package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"obelus/engine/plan"
	"obelus/store"
)

// Request is a question to a model, whatever its provider: what a provider is sent is made of it.
type Request struct {
	Purpose string   `json:"purpose"` // "answer", "plan" or "ask"
	Model   string   `json:"model"`   // its name in the settings
	System  string   `json:"system"`
	Blocks  []string `json:"blocks"` // from what never changes to what changes last
	Schema  any      `json:"schema"` // of the answer: an [Object], or another JSON value
	Params  Params   `json:"params"`

	// Key is the key of the call or the plan, context/tick.position. It does not belong to the
	// question, and is not hashed.
	Key string `json:"-"`

	// Loose is the same question with a smaller schema, for a provider that does not take the exact
	// one: nil where there is none. Of plans, it has the arguments of calls as JSON texts.
	Loose *Request `json:"-"`

	// Stable is the number of blocks that are the same at the next question of the context.
	Stable int `json:"-"`
}

// Params are the settings of a model that change its answers. A nil field leaves the choice to the
// provider.
type Params struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	Effort      string   `json:"effort,omitempty"`
}

// Hash returns the SHA-256 of the request as JSON, in hex: of all that the model is shown.
func (r *Request) Hash() string {
	sum := sha256.Sum256(r.JSON())
	return hex.EncodeToString(sum[:])
}

// JSON returns the request as JSON, schemas in their own order and other objects with sorted keys.
func (r *Request) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		panic("model: a request that is no JSON: " + err.Error()) // its values are JSON's
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Answer is what a model said to a request.
type Answer struct {
	// Value fits the request's schema as far as the provider held the model to it: it is to be
	// checked. It is not set where the text is no JSON, or the model refused.
	Value   store.Optional
	Text    string // the answer as the provider gave it
	Refusal string // why the model does not answer; empty if it does
	CutOff  bool   // it ended at the limit of tokens
	Loose   bool   // it answers the loose form of the request
	Problem string // why Value is not set, in words for the model; empty if it is no JSON
	Usage   plan.Usage
}

// Asker sends requests: a client of a provider does, and a cassette.
type Asker interface {
	// Ask sends a request once a meter allows it, and counts it there. Its error is about the
	// provider, the network or the budget, and contains no secret. It is called from several
	// goroutines at once.
	Ask(ctx context.Context, r *Request, meter *plan.Meter) (*Answer, error)
}

// Object is a JSON object whose members keep their order, as those of schemas must: a model writes
// its answer in the order of the properties.
type Object []Member

// Member is one name of an [Object] with its value: an Object, a slice, or another JSON value.
type Member struct {
	Name  string
	Value any
}

// Get returns the value of a name; nil if the object lacks it.
func (o Object) Get(name string) any {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) { return appendValue(nil, o) }

// appendValue appends a value as JSON. Objects and lists within one another are written into one
// buffer.
func appendValue(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case Object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, m.Name); err != nil {
				return nil, err
			}
			if b, err = appendValue(append(b, ':'), m.Value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case []any:
		if v == nil {
			return append(b, "null"...), nil
		}
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	text, err := encode(v)
	return append(b, text...), err
}

// encode writes a value as JSON, without escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
