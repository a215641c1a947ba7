package model

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"obelus/store"
)

// scrubbed stands where a secret was.
const scrubbed = "[secret]"

// scrubber replaces secrets in texts. The zero scrubber has none. It is safe for concurrent use.
type scrubber struct {
	mu      sync.RWMutex
	values  map[string]bool
	plain   *strings.Replacer // the secrets as they are, and as JSON has them
	escaped *regexp.Regexp    // in any escaped form as well
}

// add makes texts known as secrets. Those of less than 4 bytes are left out: replacing them would
// tear other texts apart.
func (s *scrubber) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.values)
	for _, v := range values {
		if len(v) >= 4 {
			if s.values == nil {
				s.values = map[string]bool{}
			}
			s.values[v] = true
		}
	}
	if len(s.values) == before {
		return
	}
	var pairs, patterns []string
	for v := range s.values {
		inJSON := strings.Trim(string(store.EncodeJSON(v)), `"`)
		pairs = append(pairs, v, scrubbed, inJSON, scrubbed)
		patterns = append(patterns, escapedPattern(v))
	}
	s.plain = strings.NewReplacer(pairs...)
	s.escaped = regexp.MustCompile(strings.Join(patterns, "|"))
}

// escapedPattern is a regular expression for a text of which each character may be escaped: by a
// backslash, as \u0041, or as %41.
func escapedPattern(text string) string {
	var b strings.Builder
	for _, r := range text {
		var percent strings.Builder
		for _, c := range utf8.AppendRune(nil, r) {
			fmt.Fprintf(&percent, "%%%02x", c)
		}
		q := regexp.QuoteMeta(string(r))
		fmt.Fprintf(&b, `(?:\\?%s|\\u(?i:%04x)|(?i:%s))`, q, r, percent.String())
	}
	return b.String()
}

// text returns an answer without the secrets.
func (s *scrubber) text(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.plain == nil {
		return text
	}
	return s.plain.Replace(text)
}

// echo returns what a server said, without the secrets in whatever form it gives them back.
func (s *scrubber) echo(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.escaped == nil {
		return text
	}
	return s.escaped.ReplaceAllLiteralString(text, scrubbed)
}
