package plan

import (
	"encoding/json"
	"strconv"
	"time"

	"obelus/engine/duration"
	"obelus/store"
)

// Attempts bounds the attempts of a call.
type Attempts struct {
	Timeout time.Duration // of one attempt; 0 for DefaultTimeout
	Retries int           // further attempts after a failure
	// Pause before the second attempt, doubled for each one after; 0 for DefaultBackoff.
	Backoff time.Duration
}

// ownAttempts holds the bounds on its attempts that a call gives itself.
type ownAttempts struct {
	timeout, backoff time.Duration // 0 for the activity's
	retries          *int          // nil for the activity's
}

// attemptProperties are the meta-properties that bound the attempts of a call.
var attemptProperties = []string{"_timeout", "_retries", "_backoff"}

// parseAttempts reads a call's _timeout, _retries and _backoff; nil for a call with none of them.
func parseAttempts(issued map[string]any) (own *ownAttempts, err error) {
	for _, name := range attemptProperties {
		v, given := issued[name]
		if !given {
			continue
		}
		if own == nil {
			own = &ownAttempts{}
		}
		switch name {
		case "_timeout":
			if own.timeout, err = duration.Read(v); err == nil && own.timeout == 0 {
				return own, Faultf(CodeSchema, "_timeout: it must be above 0")
			}
		case "_backoff":
			if own.backoff, err = duration.Read(v); own.backoff == 0 {
				own.backoff = 1 // explicitly at once
			}
		case "_retries":
			number, _ := v.(json.Number)
			n, wrong := strconv.Atoi(number.String())
			if wrong != nil || n < 0 {
				return own, Faultf(CodeSchema, "_retries: expected a whole number, not negative, found %s", store.EncodeJSON(v))
			}
			own.retries = &n
		}
		if err != nil {
			return own, Faultf(CodeSchema, "%s: %w", name, err)
		}
	}
	return own, nil
}

// over returns the attempts of a call whose activity has others; o may be nil.
func (o *ownAttempts) over(a Attempts) Attempts {
	if o == nil {
		return a
	}
	if o.timeout != 0 {
		a.Timeout = o.timeout
	}
	if o.backoff != 0 {
		a.Backoff = o.backoff
	}
	if o.retries != nil {
		a.Retries = *o.retries
	}
	return a
}
