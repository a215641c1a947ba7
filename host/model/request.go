package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"obelus/engine/plan"
	"obelus/host/model/fit"
	"obelus/store"
)

// Request is a question to a model, independent of its provider. The messages to a provider are
// made of it.
type Request struct {
	Version int      `json:"version,omitempty"` // [RequestVersion] as it was made; 0 for those before there was one
	Purpose string   `json:"purpose"`           // "answer", "plan" or "ask"
	Model   string   `json:"model"`             // its name in the settings
	System  string   `json:"system"`
	Blocks  []string `json:"blocks"` // from what never changes to what changes last
	Schema  any      `json:"schema"` // of the answer: a [fit.Object], or another JSON value; nil for any text
	Params  Params   `json:"params"`
	Cut     []string `json:"cut,omitempty"` // references to values that it shows in part

	// Key is the key of the call or the plan, context/tick.position. It does not belong to the
	// question, and is not hashed.
	Key string `json:"-"`

	// Window is the window by the server of the model that the question keeps to; 0 where it keeps to
	// the settings. A cassette has it beside the question.
	Window int `json:"-"`

	// Loose is the same question with a smaller schema, for a provider that does not take the exact
	// one: nil where there is none. Of plans, it has the arguments of calls as JSON texts.
	Loose *Request `json:"-"`

	// Stable is the number of blocks that are the same at the next question of the context.
	Stable int `json:"-"`
}

// Params are the settings of a model that change its answers. A nil field leaves the choice to the
// provider.
type Params struct {
	Temperature *float64 `json:"temperature,omitempty" kind:"0 to 2" jsonschema:"of its choices"`
	TopP        *float64 `json:"top_p,omitempty" kind:"0 to 1" jsonschema:"of its choices"`
	Seed        *int64   `json:"seed,omitempty" kind:"count" jsonschema:"of its choices, where the provider takes one"`
	MaxTokens   int      `json:"max_tokens,omitempty" jsonschema:"of an answer (8192)"`
	Effort      string   `json:"effort,omitempty" jsonschema:"of reasoning, as the provider has it"`
}

// Calls returns the latent calls that the request is about, such as "1.2"; nil for another purpose
// than their answers.
func (r *Request) Calls() (calls []string) {
	schema, ok := r.Schema.(fit.Object)
	if !ok || r.Purpose != purposeAnswer {
		return nil
	}
	for _, m := range schema.Object("properties") {
		if m.Name != thinkingField {
			calls = append(calls, m.Name)
		}
	}
	return calls
}

// Hash returns the SHA-256 of the request as JSON, in hex: of all that the model is shown.
func (r *Request) Hash() string { return hashOf(r.JSON()) }

// hashOf returns the SHA-256 of a text, in hex.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
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

// ParseRequest reads a request as [Request.JSON] writes it: its schema keeps its order, and so the
// request its hash.
func ParseRequest(text []byte) (*Request, error) {
	var r struct {
		Request
		Schema json.RawMessage `json:"schema"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("the request can't be read: %w", err)
	}
	if r.Schema != nil {
		var err error
		if r.Request.Schema, err = fit.Parse(r.Schema); err != nil {
			return nil, fmt.Errorf("the schema of the request can't be read: %w", err)
		}
	}
	return &r.Request, nil
}

// Answer is the answer of a model to a request.
type Answer struct {
	// Value fits the request's schema as far as the provider held the model to it: it is to be
	// checked. It is not set where the text is no JSON, or the model refused.
	Value   store.Optional
	Text    string // the answer as the provider gave it
	Refusal string // why the model does not answer; empty if it does
	CutOff  bool   // it ended at the limit of tokens
	Loose   bool   // it answers the loose form of the request
	Problem string // why Value is not set, in words for the model; empty where it refused
	Usage   plan.Usage
}

// Asker sends requests: a client of a provider does, and a cassette.
type Asker interface {
	// Ask sends a request once a meter allows it, and counts it there. Its error is about the
	// provider, the network or the budget, and contains no secret. It is called from several
	// goroutines at once.
	Ask(ctx context.Context, r *Request, meter *plan.Meter) (*Answer, error)
}
