package model

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"obelus/engine/duration"
)

// How long a request waits before it is tried again: twice as long each time, unless the provider
// says how long.
const (
	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
	// longestAsked is the longest that a provider may ask to wait.
	longestAsked = 10 * time.Minute
)

// waitBefore returns how long to wait after a number of tries.
func waitBefore(tries int, asked time.Duration) time.Duration {
	if asked >= 0 {
		return asked
	}
	wait := longestWait
	if tries < 8 {
		wait = min(wait, firstWait<<(tries-1))
	}
	return wait/2 + rand.N(wait/2+1)
}

// retryable reports whether another try may help after a status.
func retryable(status int, code string) bool {
	switch status {
	case http.StatusTooManyRequests:
		return code != "insufficient_quota"
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInsufficientStorage, 529: // overloaded
		return true
	}
	return 520 <= status && status <= 526 || status == 530 // of a proxy before the provider
}

// retryAfter returns how long a provider asks to wait, or a negative duration. Where it says only
// that there are too many requests, that is until its limits begin anew.
func retryAfter(status int, h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	if status == http.StatusTooManyRequests {
		return untilReset(h)
	}
	return -1
}

// untilReset returns how long it is until the last of the limits begins anew that are used up, or a
// negative duration. Providers name them x-ratelimit-reset-tokens, anthropic-ratelimit-tokens-reset
// and the like; one beside which nothing remains to be said counts as used up.
func untilReset(h http.Header) time.Duration {
	wait := time.Duration(-1)
	for name := range h {
		if !strings.Contains(name, "Ratelimit-") || !strings.Contains(name, "Reset") {
			continue
		}
		remaining := h.Get(strings.Replace(name, "Reset", "Remaining", 1))
		if n, err := strconv.ParseFloat(remaining, 64); err != nil || n <= 0 {
			wait = max(wait, readReset(h.Get(name)))
		}
	}
	return wait
}

// readReset returns how long it is until a time that a header gives: a number of seconds, a
// duration, or a moment. It is negative for none of them.
func readReset(text string) time.Duration {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && n < 0, err == nil && n >= 1e15:
		return -1
	case err == nil && n < 1e9:
		return time.Duration(n * float64(time.Second))
	case err == nil && n < 1e12: // since 1970
		return max(time.Until(time.Unix(int64(n), 0)), 0)
	case err == nil: // in milliseconds
		return max(time.Until(time.UnixMilli(int64(n))), 0)
	}
	if d, err := duration.Parse(text); err == nil {
		return max(d, -1)
	}
	for _, layout := range []string{time.RFC3339, http.TimeFormat} {
		if at, err := time.Parse(layout, text); err == nil {
			return max(time.Until(at), 0)
		}
	}
	return -1
}
