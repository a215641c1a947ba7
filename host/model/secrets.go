package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// scrubbed stands where a secret was.
const scrubbed = "[secret]"

// scrubber replaces secrets in texts. The zero scrubber has none. It is safe for concurrent use.
type scrubber struct {
	mu      sync.RWMutex
	values  map[string]bool
	marks   []string       // a part of each that no usual encoding changes
	escaped *regexp.Regexp // the secrets, in any escaped form
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
	var patterns []string
	s.marks = nil
	longestFirst := slices.SortedFunc(maps.Keys(s.values), func(a, b string) int { return len(b) - len(a) })
	for _, v := range longestFirst { // one may begin with another
		s.marks = append(s.marks, longestPlain(v))
		patterns = append(patterns, escapedPattern(v))
	}
	s.escaped = regexp.MustCompile(strings.Join(patterns, "|"))
}

// escapedPattern returns a regular expression for a text in which each character may be escaped: by
// a backslash, as \u0041, or as %41.
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

// longestPlain returns the longest part of a text that is letters, digits, - and _.
func longestPlain(text string) (longest string) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// text returns an answer without the secrets. It is made for long texts without any.
func (s *scrubber) text(text string) string {
	s.mu.RLock()
	found := slices.ContainsFunc(s.marks, func(mark string) bool { return strings.Contains(text, mark) })
	s.mu.RUnlock()
	if !found {
		return text
	}
	return s.echo(text)
}

// echo returns a server's text without the secrets, in whatever form the server gives them back.
func (s *scrubber) echo(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.escaped == nil {
		return text
	}
	return s.escaped.ReplaceAllLiteralString(text, scrubbed)
}

// streamScrubber hands on a text that comes in pieces, without the secrets. It keeps back the end,
// in which a secret may have begun.
type streamScrubber struct {
	secrets *scrubber
	hand    func(string)
	kept    string
}

// stream returns a scrubber for the pieces of one text.
func (s *scrubber) stream(hand func(string)) *streamScrubber {
	return &streamScrubber{secrets: s, hand: hand}
}

// write hands on a piece, as far as it can be no part of a secret.
func (s *streamScrubber) write(text string) {
	s.kept = s.secrets.text(s.kept + text)
	n := len(s.kept) - s.secrets.longest()
	for n > 0 && n < len(s.kept) && !utf8.RuneStart(s.kept[n]) {
		n--
	}
	if n > 0 {
		s.hand(s.kept[:n])
		s.kept = s.kept[n:]
	}
}

// flush hands on the rest.
func (s *streamScrubber) flush() {
	if s.kept != "" {
		s.hand(s.kept)
		s.kept = ""
	}
}

// longest returns how many bytes a secret may take where it is escaped; 0 without any.
func (s *scrubber) longest() (n int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for v := range s.values {
		n = max(n, 6*len(v))
	}
	return n
}
