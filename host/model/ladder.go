package model

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// The purposes of requests.
const (
	purposeAnswer = "answer"
	purposePlan   = "plan"
	purposeAsk    = "ask"
)

// step is a way in which a schema is given.
type step struct {
	mode  string
	loose bool // the schema is in its loose form
}

// String names the step, as the journal does.
func (s step) String() string {
	if s.mode == modeSchema && s.loose {
		return modeLoose
	}
	return s.mode
}

// ladder remembers how a model is given schemas: the first way that its provider has not refused.
type ladder struct {
	mu     sync.Mutex
	modes  []string // from the current one down
	loose  bool     // plans are asked for in their loose form
	warned map[string]bool
}

// start begins with the mode of the settings.
func (l *ladder) start(c Config) {
	l.modes = []string{modeSchema, modeTools, modeJSON, modeText}
	if c.Wire == wireAnthropic {
		l.modes = []string{modeSchema, modeTools, modeText}
	}
	if i := slices.Index(l.modes, c.Mode); i > 0 {
		l.modes = l.modes[i:]
	}
}

// at returns the current step for a request.
func (l *ladder) at(purpose string) step {
	l.mu.Lock()
	defer l.mu.Unlock()
	return step{l.modes[0], l.loose && purpose == purposePlan}
}

// down goes one step down from one that was refused, unless another request has done so already. It
// reports whether the request is to be sent again, and the step that it took, if it took one.
func (l *ladder) down(from step, canLoosen bool) (again bool, to *step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.modes[0] != from.mode || canLoosen && l.loose {
		return true, nil
	}
	if canLoosen {
		l.loose = true
		return true, &step{from.mode, true}
	}
	if len(l.modes) == 1 {
		return false, nil
	}
	l.modes, l.loose = l.modes[1:], false
	return true, &step{l.modes[0], false}
}

// warnOnce calls a function, if it was not called for this reason before.
func (l *ladder) warnOnce(reason string, warn func()) {
	l.mu.Lock()
	first := !l.warned[reason]
	if l.warned == nil {
		l.warned = map[string]bool{}
	}
	l.warned[reason] = true
	l.mu.Unlock()
	if first {
		warn()
	}
}

// stepDown takes a step down the ladder after a refusal. It reports whether the request is to be
// sent again. With strict settings it is an error. ignored says that the provider took the schema
// and did not heed it: a smaller one would fare no better.
func (c *Client) stepDown(r *Request, from step, why string, ignored bool) (bool, error) {
	canLoosen := from.mode == modeSchema && !from.loose && r.Loose != nil && !ignored
	if c.config.Strict {
		return false, fmt.Errorf("model %q: mode %s does not work: %s (strict = true allows no lower mode)", c.config.Name, from, why)
	}
	again, to := c.ladder.down(from, canLoosen)
	if to != nil {
		hint := ""
		if to.mode != from.mode {
			hint = fmt.Sprintf(" (mode = %q in obelus.lua begins with it)", to.mode)
		}
		c.warn(fmt.Sprintf("mode %s does not work: %s; from now on it is asked in mode %s%s", from, why, to, hint))
	}
	return again, nil
}

// namedBy are words in the errors of a provider that refuses a mode, by mode.
var namedBy = map[string][]string{
	modeSchema: {"schema", "response_format", "structured output", "output_config", "output_format", "grammar"},
	modeLoose:  {"schema", "response_format", "structured output", "output_config", "output_format", "grammar"},
	modeTools:  {"tool", "function", "schema", "grammar"},
	modeJSON:   {"response_format", "json_object", "json mode"},
}

// refusesMode returns why the provider does not take the mode, if that is why the request failed.
func (f *failure) refusesMode(mode string) string {
	switch f.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return ""
	}
	said := strings.ToLower(f.said)
	if slices.ContainsFunc(namedBy[mode], func(word string) bool { return strings.Contains(said, word) }) {
		return f.said
	}
	return ""
}
