package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/store"
)

// maxAnswerDepth bounds the nesting of an answer: the values in it may have store.MaxDepth.
const maxAnswerDepth = store.MaxDepth + 16

// decodeAnswer reads the JSON value of an answer, whatever the mode: the whole text, or the only
// block of code in it, or the only JSON value at its top level. A plan is one of the first two.
// Thoughts that the text begins with do not count.
func decodeAnswer(text string, isPlan bool) (any, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the answer is empty")
	}
	v, whole := store.DecodeGiven([]byte(text), maxAnswerDepth)
	if whole == nil || json.Valid([]byte(text)) {
		return v, notJSON(whole)
	}
	s := &search{text: text}
	s.run()
	switch only, err := s.only(); {
	case err != nil:
		return nil, err
	case only == nil:
		v, err := store.DecodeGiven([]byte(s.code()), maxAnswerDepth)
		if err != nil {
			return nil, notJSON(whole)
		}
		return v, nil
	case isPlan && !s.isAlone(only):
		return nil, errors.New("a plan is the whole answer, or its only block of code (```): other text stands beside it")
	default:
		return only.value, nil
	}
}

// notJSON says that an answer is not JSON, and why.
func notJSON(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the answer is not JSON: %w", err)
}

// search is the search for the JSON value of an answer among other text.
type search struct {
	text     string
	from     int // where the thoughts at the beginning end
	found    []located
	broken   error  // why the text at the top level is no JSON; nil if nothing looks broken
	thoughts string // the mark that began the thoughts which the search is in
	blocks   int    // open blocks of thoughts after a value
	work     int    // number of bytes that were looked at
}

// located is a JSON value with its place in the text.
type located struct {
	value      any
	start, end int
}

// marks matches what the search stops at: a bracket, and where thoughts begin and end, as models
// and servers write it.
var marks = lazyregexp.New(`(?i)</?[\w:.-]*(?:think|thought|reason|reflect|analysis|scratchpad)[^<>]*>` +
	`|\[/?think\]|◁/?think▷|<\|channel\|>final[^{}]*?<\|message\|>|[{}\[\]]`)

// run finds the values at the top level, and the first text that looks like broken JSON.
func (s *search) run() {
	for at := 0; ; {
		match := marks().FindStringIndex(s.text[at:])
		if match == nil {
			break
		}
		start, end := at+match[0], at+match[1]
		mark := s.text[start:end]
		at = end
		switch isBracket := len(mark) == 1; {
		case !isBracket && thoughtsEnd().MatchString(mark):
			s.endThoughts(end)
		case s.thoughts != "", isBracket && s.broken != nil: // it is none of the top level
		case mark == "}" || mark == "]":
			s.broken = notJSON(fmt.Errorf("there is a %s too many", mark))
		case isBracket:
			at = s.readValue(start)
		case len(s.found) > 0 || s.broken != nil: // second thoughts, which count as text
			s.blocks++
		default:
			s.thoughts = mark
		}
	}
	if s.thoughts != "" {
		s.broken = fmt.Errorf("the answer ends within its thoughts: there is no end of %s", s.thoughts)
	}
}

// thoughtsEnd matches the marks at which thoughts end.
var thoughtsEnd = lazyregexp.New(`^(?:.?/|<\|)`)

// endThoughts passes the end of thoughts. Without their beginning, which some servers leave out,
// all before is thoughts.
func (s *search) endThoughts(end int) {
	if s.blocks > 0 {
		s.blocks--
		return
	}
	*s = search{text: s.text, from: end, work: s.work}
}

// readValue reads the value that a bracket begins, and returns where the search goes on.
func (s *search) readValue(start int) int {
	length, isClosed := valueLength(s.text[start:])
	end := start + length
	if s.work += length; s.work > maxWork*len(s.text) {
		s.broken = notJSON(errors.New("there are too many brackets"))
		return len(s.text)
	}
	value, err := store.DecodeGiven([]byte(s.text[start:end]), maxAnswerDepth)
	switch {
	case err == nil:
		s.found = append(s.found, located{value, start, end})
		return end
	case looksLikeJSON(s.text[start:end]):
		// Again, with the places as they are in the whole text.
		_, err = store.DecodeGiven([]byte(blank(s.text[:start])+s.text[start:end]), maxAnswerDepth)
		s.broken = notJSON(err)
	case isClosed:
		return end
	}
	return start + 1
}

// maxWork bounds the search, as a multiple of the size of the text.
const maxWork = 16

// valueLength returns how many bytes the value has that a bracket begins, by its brackets and its
// strings: all of the text if it is not closed.
func valueLength(text string) (length int, isClosed bool) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(text), false
}

// looksLikeJSON reports whether text in brackets is broken JSON and not {prose}.
func looksLikeJSON(text string) bool {
	if text[0] == '{' {
		return strings.ContainsAny(text, `":'“”‘’`)
	}
	return strings.ContainsAny(text, `"{`)
}

// blank returns a text of the same lines and columns without any character.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}

// checkEnds returns an error for a value that is a part of another one, which is broken.
func (s *search) checkEnds(v located) error {
	before := strings.TrimRight(s.text[s.from:v.start], " \t\r\n")
	after := strings.TrimLeft(s.text[v.end:], " \t\r\n")
	switch {
	case strings.HasPrefix(after, ","):
		return errors.New("there is a comma after the value")
	case strings.HasPrefix(after, ":"), strings.HasPrefix(after, `"`):
		return fmt.Errorf("there is a %.1s after the value", after)
	case strings.HasSuffix(before, `":`), strings.HasSuffix(before, `",`), strings.HasSuffix(s.text[:v.start], `"`):
		return fmt.Errorf("there is a %s before the value", before[len(before)-1:])
	}
	return nil
}

// only returns the only value at the top level; nil for none. Beside another value a list of
// numbers is a footnote.
func (s *search) only() (*located, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	if len(s.found) > 1 {
		s.found = slices.DeleteFunc(s.found, func(l located) bool { return isFootnote(s.text[l.start:l.end]) })
	}
	switch len(s.found) {
	case 0:
		return nil, nil
	case 1:
		return &s.found[0], notJSON(s.checkEnds(s.found[0]))
	}
	return nil, errors.New("there are two answers, or more: give one JSON value, and nothing else")
}

func isFootnote(text string) bool { return strings.Trim(text, "[]0123456789, ") == "" }

// fenced matches a text with one block of code, and a text in backticks.
var fenced = lazyregexp.New("(?s)^[^`]*```(?:\\w*\\n|json\\b)?([^`]*)```[^`]*$|^`([^`]*)`$")

// code returns the only block of code after the thoughts, or all that comes after them.
func (s *search) code() string {
	rest := strings.TrimSpace(s.text[s.from:])
	if match := fenced().FindStringSubmatch(rest); match != nil {
		return match[1] + match[2]
	}
	return rest
}

// blockStart matches a text that ends with the beginning of a block of code.
var blockStart = lazyregexp.New("```[\\w-]*$")

// isAlone reports whether a value is all that comes after the thoughts, or the only block of code.
func (s *search) isAlone(v *located) bool {
	before, after := strings.TrimSpace(s.text[s.from:v.start]), strings.TrimSpace(s.text[v.end:])
	if before == "" && after == "" {
		return true
	}
	begins := blockStart().MatchString(before) && strings.Count(before, "```") == 1
	ends := after == "" || strings.HasPrefix(after, "```") && strings.Count(after, "```") == 1
	return begins && ends
}
