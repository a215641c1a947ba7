package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Dagger begins every reference.
const Dagger = "†"

// MaxPathSegments bounds the depth of a path, its kind not counted.
const MaxPathSegments = 100

// Path names a value in a context: a kind, and the keys and indices that lead
// from that kind's value to a part of it (protocol §2).
//
// A Path is comparable: two paths are equal exactly if they name the same
// place. Its text is canonical (†state.items[0] and †state["items"].0 are both
// †state.items.0) and round-trips through [ParsePath]. The zero Path names
// nothing.
type Path struct{ text string }

// PathError is a path that does not parse. Offset is the place in Text, in
// bytes, at which reading stopped making sense.
type PathError struct {
	Text    string
	Offset  int
	Message string
}

func (e *PathError) Error() string {
	return fmt.Sprintf("bad path %q: %s at column %d", e.Text, e.Message, utf8.RuneCountInString(e.Text[:e.Offset])+1)
}

// Class implements the interface of [ClassOf].
func (e *PathError) Class() Class { return Usage }

// QuoteHint returns the message of a [PathError] at a single quote in parentheses, to end another
// error with; empty for any other error.
func QuoteHint(err error) string {
	bad, ok := errors.AsType[*PathError](err)
	if !ok || !strings.HasPrefix(bad.Text[bad.Offset:], "'") {
		return ""
	}
	return " (" + bad.Message + ")"
}

// ParseTyped is [ParsePath] for a path that a person types: its dagger may be left out.
func ParseTyped(text string) (Path, error) {
	return ParsePath(Dagger + strings.TrimPrefix(text, Dagger))
}

// ParsePath reads a whole path, dagger and all.
func ParsePath(text string) (Path, error) {
	p, n, err := ScanPath(text)
	if err != nil {
		return Path{}, err
	}
	if n != len(text) {
		return Path{}, &PathError{text, n, "unexpected " + describeRune(text[n:])}
	}
	return p, nil
}

// MustParsePath is [ParsePath] for text that is known to be good.
func MustParsePath(text string) Path {
	p, err := ParsePath(text)
	if err != nil {
		panic(err)
	}
	return p
}

// ScanPath reads the longest path at the start of text and returns how many bytes it took. The rest
// belongs to the caller: an expression goes on there.
func ScanPath(text string) (Path, int, error) {
	if !strings.HasPrefix(text, Dagger) {
		return Path{}, 0, &PathError{text, 0, "a path begins with " + Dagger}
	}
	at := len(Dagger)
	n := wordLen(text[at:])
	if n == 0 {
		return Path{}, 0, &PathError{text, at, "expected a kind, found " + describeRune(text[at:])}
	}
	at += n
	var b strings.Builder
	b.WriteString(text[:at])
	for segments := 0; at < len(text); segments++ {
		segment, n, err := scanSegment(text, at)
		if err != nil {
			return Path{}, 0, err
		}
		if n == 0 {
			break
		}
		if segments == MaxPathSegments {
			return Path{}, 0, &PathError{text, at, fmt.Sprintf("more than %d segments", MaxPathSegments)}
		}
		appendSegment(&b, segment)
		at += n
	}
	return Path{b.String()}, at, nil
}

// scanSegment reads .word, [0] or ["any key"] at text[at:]; n is 0 where the
// path has ended.
func scanSegment(text string, at int) (segment string, n int, err error) {
	rest := text[at:]
	switch {
	case rest[0] == '.':
		n := wordLen(rest[1:])
		if n == 0 {
			return "", 0, &PathError{text, at + 1, "expected a key, found " + describeRune(rest[1:])}
		}
		return rest[1 : 1+n], 1 + n, nil
	case strings.HasPrefix(rest, `["`), strings.HasPrefix(rest, "['"):
		quote, end := rest[1], 2
		for end < len(rest) && rest[end] != quote {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return "", 0, &PathError{text, at + 1, "a quoted key is not closed"}
		}
		quoted := rest[1 : end+1]
		if quote == '\'' {
			quoted = `"` + strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `\"`, `"`, `\"`).Replace(rest[2:end]) + `"`
		}
		var key string
		if !utf8.ValidString(quoted) || json.Unmarshal([]byte(quoted), &key) != nil {
			return "", 0, &PathError{text, at + 1, "a quoted key is not a JSON string"}
		}
		if end+1 >= len(rest) || rest[end+1] != ']' {
			return "", 0, &PathError{text, at + end + 1, "expected ] after the key"}
		}
		if quote == '\'' {
			return "", 0, &PathError{text, at + 1, fmt.Sprintf("write [%s] for the key in single quotes", EncodeJSON(key))}
		}
		return key, end + 2, nil
	case rest[0] == '[':
		end := 1
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		if end == 1 || end >= len(rest) || rest[end] != ']' {
			return "", 0, nil // an index that an expression computes
		}
		return rest[1:end], end + 1, nil
	}
	return "", 0, nil
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func wordLen(s string) int {
	for i, r := range s {
		if !isWordRune(r) {
			return i
		}
	}
	return len(s)
}

func describeRune(s string) string {
	if s == "" {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(s)
	return strconv.QuoteRune(r)
}

func appendSegment(b *strings.Builder, segment string) {
	if segment != "" && wordLen(segment) == len(segment) {
		b.WriteByte('.')
		b.WriteString(segment)
		return
	}
	b.WriteByte('[')
	b.Write(EncodeJSON(segment))
	b.WriteByte(']')
}

// ValidKind reports whether a kind can be named by a path: Unicode letters,
// digits and _, at least one.
func ValidKind(kind string) bool { return kind != "" && wordLen(kind) == len(kind) }

// KindPath is the path of a kind's whole value. The kind must be valid.
func KindPath(kind string) Path { return Path{Dagger + kind} }

// String is the canonical text, empty for the zero Path.
func (p Path) String() string { return p.text }

// MarshalText gives the canonical text, empty for the zero Path.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// UnmarshalText is [ParsePath]; an empty text gives the zero Path.
func (p *Path) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*p = Path{}
		return nil
	}
	*p, err = ParsePath(string(text))
	return err
}

// IsZero reports whether p names nothing.
func (p Path) IsZero() bool { return p.text == "" }

// Kind is the kind that the path is in.
func (p Path) Kind() string {
	rest := strings.TrimPrefix(p.text, Dagger)
	return rest[:wordEnd(rest)]
}

// wordEnd is where the next segment of a canonical path begins, or the path
// ends.
func wordEnd(text string) int {
	for i := range len(text) {
		if text[i] == '.' || text[i] == '[' {
			return i
		}
	}
	return len(text)
}

// Segments are the keys below the kind, unquoted; an index is its digits.
func (p Path) Segments() []string {
	if wordEnd(p.text) == len(p.text) {
		return nil
	}
	return p.appendSegments(make([]string, 0, 4))
}

func (p Path) appendSegments(segments []string) []string {
	for at := wordEnd(p.text); at < len(p.text); {
		segment, n, err := scanSegment(p.text, at)
		if err != nil || n == 0 {
			panic("store: a path is not canonical: " + p.text)
		}
		segments = append(segments, segment)
		at += n
	}
	return segments
}

// Child is the path of one key or index below p.
func (p Path) Child(segment string) Path {
	var b strings.Builder
	b.WriteString(p.text)
	appendSegment(&b, segment)
	return Path{b.String()}
}

// Prefixes are the paths from the kind down to p itself.
func (p Path) Prefixes() []Path {
	at := wordEnd(p.text)
	if at == len(p.text) {
		return []Path{p}
	}
	prefixes := make([]Path, 0, 4)
	for at < len(p.text) {
		prefixes = append(prefixes, Path{p.text[:at]})
		_, n, _ := scanSegment(p.text, at)
		at += n
	}
	return append(prefixes, p)
}

// Contains reports whether q is p or lies below it.
func (p Path) Contains(q Path) bool {
	if !strings.HasPrefix(q.text, p.text) || p.text == "" {
		return false
	}
	return len(q.text) == len(p.text) || q.text[len(p.text)] == '.' || q.text[len(p.text)] == '['
}

// Overlaps reports whether one of the two contains the other: a write to one can change the value
// of the other.
func (p Path) Overlaps(q Path) bool { return p.Contains(q) || q.Contains(p) }

// below is what leads from p to q, which p contains.
func (p Path) below(q Path) []string {
	if len(q.text) == len(p.text) {
		return nil
	}
	return Path{q.text[len(p.text):]}.Segments()
}

// beforeIndex is the part of the path above its first numeric segment. Whether
// such a segment is an index or a key depends on the value that it is applied
// to, so what bears on the path is all that bears on this one.
func (p Path) beforeIndex() Path {
	for at := wordEnd(p.text); at < len(p.text); {
		segment, n, _ := scanSegment(p.text, at)
		if isDigits(segment) {
			return Path{p.text[:at]}
		}
		at += n
	}
	return p
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// index reads a segment as an array index; ok is false for anything that is
// not written as one (00 and 1e3 are keys).
func index(segment string) (i int, ok bool) {
	if !isDigits(segment) || (len(segment) > 1 && segment[0] == '0') {
		return 0, false
	}
	i, err := strconv.Atoi(segment)
	return i, err == nil
}
