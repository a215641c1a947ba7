package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Values are JSON as Go has it: nil, bool, string, [json.Number], []any and
// map[string]any. Numbers keep their text, so that no digit is ever lost.
// Values that the store hands out are shared and must not be changed. [FromGo]
// makes them of what Go programs have.

// MaxDepth bounds the nesting of a message's data.
const MaxDepth = 256

// DecodeJSON reads exactly one JSON value. Invalid UTF-8, half a character and
// nesting beyond [MaxDepth] are refused.
func DecodeJSON(text []byte) (any, error) { return DecodeWithin(text, MaxDepth) }

// DecodeWithin is [DecodeJSON] with another bound of nesting: for what holds values
// of [MaxDepth] within objects of its own.
func DecodeWithin(text []byte, most int) (any, error) {
	if err := CheckEncoding(text); err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, errors.New("not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, jsonError(text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more text after the JSON value, at %s", position(text, d.InputOffset()))
	}
	if i := halfCharacter(text); i >= 0 {
		return nil, fmt.Errorf("%s is half a character: the other half is not there, at %s", text[i:i+6], position(text, int64(i)))
	}
	if err := checkDepth(v, most); err != nil {
		return nil, err
	}
	return v, nil
}

// DecodeGiven is [DecodeWithin] for text that a person or a program wrote: it may begin with a byte
// order mark, and a key that stands twice in one object is refused, for only one of the two would
// count.
func DecodeGiven(text []byte, most int) (any, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	v, err := DecodeWithin(text, most)
	if err != nil || colons(text) == keys(v) { // the usual case
		return v, err
	}
	if key, at := repeatedKey(text); at > 0 {
		return nil, fmt.Errorf("%q stands twice in one object: only one of them would count, at %s", key, position(text, at-1))
	}
	return v, nil
}

// colons counts the colons outside strings in JSON: one for each key.
func colons(text []byte) (n int) {
	within := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			within = !within
		case within && text[i] == '\\':
			i++
		case !within && text[i] == ':':
			n++
		}
	}
	return n
}

// keys counts the keys of all objects in a value.
func keys(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, e := range v {
			n += keys(e)
		}
	case []any:
		for _, e := range v {
			n += keys(e)
		}
	}
	return n
}

// repeatedKey finds a key that an object has twice, and where its text ends. The text is
// known to be good.
func repeatedKey(text []byte) (key string, at int64) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var within func() bool // reads the next value
	within = func() bool {
		token, _ := d.Token()
		opened, ok := token.(json.Delim)
		if !ok {
			return false
		}
		seen := map[string]bool{}
		for d.More() {
			if opened == '{' {
				token, _ := d.Token()
				if key = token.(string); seen[key] {
					at = d.InputOffset()
					return true
				}
				seen[key] = true
			}
			if within() {
				return true
			}
		}
		_, _ = d.Token()
		return false
	}
	within()
	return key, at
}

// halfCharacter finds an escape in JSON that stands for one half of a character
// alone, which encoding/json replaces, or gives -1.
func halfCharacter(text []byte) int {
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) {
		return -1
	}
	unit := func(i int) rune { // the rune that an escape at i stands for, or 0
		if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(text[i+2:i+6]), 16, 16) // of JSON that was read before
		return rune(n)
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\':
		case !utf16.IsSurrogate(unit(i)):
			i++ // the escaped character
		case utf16.DecodeRune(unit(i), unit(i+6)) == utf8.RuneError:
			return i
		default:
			i += 11
		}
	}
	return -1
}

// CheckDepth refuses a value that is nested deeper than [MaxDepth], and so
// could not be read again.
func CheckDepth(v any) error { return checkDepth(v, MaxDepth) }

func checkDepth(v any, most int) error {
	if depth(v) > most {
		return fmt.Errorf("nested deeper than %d", most)
	}
	return nil
}

// jsonError rewrites encoding/json's errors for people: a line and a column
// in place of an offset.
func jsonError(text []byte, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %s, at %s", syntaxError(text, syntax), position(text, syntax.Offset-1))
	case err == io.EOF:
		return errors.New("not JSON: empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("not JSON: it ends too early, at %s", position(text, int64(len(bytes.TrimRight(text, " \t\r\n")))))
	}
	return fmt.Errorf("not JSON: %w", err)
}

// syntaxError describes an error in JSON. For the mistakes that people and models make most often
// it names the JSON that was meant.
func syntaxError(text []byte, err *json.SyntaxError) string {
	at := max(0, min(int(err.Offset)-1, len(text)))
	before, rest := bytes.TrimRight(text[:at], " \t\r\n"), text[at:]
	found, _ := utf8.DecodeRune(rest)
	// Of "invalid character 'x' looking for beginning of value".
	_, place, ok := strings.Cut(err.Error(), "' ")
	switch {
	// Within a string, a number or a word.
	case !ok || found == ' ' || strings.HasPrefix(place, "in "):
		return err.Error()
	case strings.ContainsRune("'“”„‘’«»", found):
		return fmt.Sprintf("strings stand in straight double quotes (\"), not in %c", found)
	case bytes.HasPrefix(rest, []byte("/*")) && !bytes.Contains(rest, []byte("*/")):
		return "the comment is not closed: */ is missing"
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")):
		return "JSON has no comments"
	case bytes.HasPrefix(rest, []byte("```")):
		return "JSON stands alone, without ``` around it"
	case (found == '}' || found == ']') && bytes.HasSuffix(before, []byte(",")):
		return fmt.Sprintf("there is a comma before the %c", found)
	}
	// Encoding/json names only its first byte.
	return fmt.Sprintf("invalid character %q %s", found, place)
}

func position(text []byte, offset int64) string {
	before := text[:max(0, min(int(offset), len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d column %d", line, column)
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	case []any:
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	default:
		return 0
	}
	return deepest + 1
}

// TypeName is what JSON calls the type of a value, for errors.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// Describe is what JSON calls the type of a value, with its article: "an
// array", "null".
func Describe(v any) string { return article(TypeName(v)) }

// DescribeType is a type's name with its article.
func DescribeType(name string) string { return article(name) }

// dig follows segments into a value. It reports false where a key or an index
// is not there.
func dig(v any, segments []string) (any, bool) {
	for _, s := range segments {
		switch c := v.(type) {
		case map[string]any:
			e, ok := c[s]
			if !ok {
				return nil, false
			}
			v = e
		case []any:
			i, ok := index(s)
			if !ok || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Dig is the value at path in data, the whole value of the path's kind.
func Dig(data any, path Path) (any, bool) {
	var few [4]string
	return dig(data, path.appendSegments(few[:0]))
}

// Wrap is the smallest value of the path's kind that holds v at path.
func Wrap(path Path, v any) any {
	var few [4]string
	segments := path.appendSegments(few[:0])
	for i := len(segments) - 1; i >= 0; i-- {
		v = map[string]any{segments[i]: v}
	}
	return v
}

// SizeOf is how many bytes a value takes as JSON, escapes in its strings left
// out of account.
func SizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) + 2
	case json.Number:
		return len(v)
	case []any:
		n := 2
		for _, e := range v {
			n += SizeOf(e) + 1
		}
		return n
	case map[string]any:
		n := 2
		for key, e := range v {
			n += len(key) + 4 + SizeOf(e)
		}
		return n
	}
	return 5
}

// byteOrderMark is what some editors put before a text in UTF-8.
const byteOrderMark = "\ufeff"

// CheckEncoding refuses a text in UTF-16 or UTF-32, which a byte order mark or a zero byte beside
// the first characters shows: read as UTF-8 it would be reported as a syntax error.
func CheckEncoding(text []byte) error {
	start := string(text[:min(len(text), 4)])
	switch marked := strings.HasPrefix(start, "\xff\xfe") || strings.HasPrefix(start, "\xfe\xff"); {
	case strings.Count(start, "\x00") > 1 && bytes.Contains(text[:len(start)], []byte{0, 0}):
		return errors.New("it is UTF-32: save it as UTF-8")
	case marked, strings.Contains(start, "\x00"):
		return errors.New("it is UTF-16: save it as UTF-8")
	}
	return nil
}
