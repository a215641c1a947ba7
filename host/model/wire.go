package model

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

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
		if e, ok := errorOf(raw); ok {
			return e, true
		}
	}
	return nil, false
}

// errorOf reads the field of a body that has an error. It reports whether it says one.
func errorOf(raw json.RawMessage) (*providerError, bool) {
	if isBlank(raw) {
		return nil, false
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

// Ways in which an answer can be no answer.
var (
	errBroken = errors.New("the answer broke off")
	errNoJSON = errors.New("the answer is not what the provider's interface promises")
)
