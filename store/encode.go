package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// EncodeJSON writes a value on one line: keys sorted, numbers as they came,
// <, > and & as themselves. The value must be one that JSON has.
func EncodeJSON(v any) []byte { return AppendJSON(make([]byte, 0, 64), v) }

// AppendJSON appends a value to b as [EncodeJSON] writes it: as encoding/json does, but without
// reflection for the types that values of the store have (nil, bool, string, [json.Number], []any,
// map[string]any), for plain numbers, and for what records of calls have.
func AppendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return AppendString(b, v)
	case json.Number:
		if isNumber(string(v)) {
			return append(b, v...)
		}
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		if size := math.Abs(v); size == 0 || 1e-6 <= size && size < 1e21 {
			return strconv.AppendFloat(b, v, 'f', -1, 64)
		}
	case []any:
		if v != nil {
			return appendArray(b, v)
		}
	case []string:
		if v != nil {
			return appendArray(b, v)
		}
	case map[string]any:
		if v != nil {
			return appendObject(b, v)
		}
	case map[string]int64:
		if v != nil {
			return appendObject(b, v)
		}
	}
	return appendOther(b, v)
}

func appendArray[T any](b []byte, array []T) []byte {
	b = append(b, '[')
	for i, e := range array {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendJSON(b, e)
	}
	return append(b, ']')
}

func appendObject[T any](b []byte, object map[string]T) []byte {
	var few [8]string
	keys := few[:0]
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendString(b, key), ':')
		b = AppendJSON(b, object[key])
	}
	return append(b, '}')
}

func appendOther(b []byte, v any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("store: not a JSON value: %v", err))
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// AppendString appends a string to b as JSON.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError && r != '\u2028' && r != '\u2029' || size > 1 && r == utf8.RuneError {
				i += size
				continue
			}
			b = fmt.Appendf(append(b, s[from:i]...), `\u%04x`, r)
			i += size
			from = i
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = appendEscaped(append(b, s[from:i]...), c)
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// StringSize returns how many bytes [AppendString] appends for a text, the quotes aside.
func StringSize(s string) int {
	size := len(s)
	for i, r := range s {
		switch {
		case r == '"', r == '\\', r < ' ' && strings.ContainsRune("\b\f\n\r\t", r):
			size++
		case r < ' ':
			size += len(`\u0000`) - 1
		case r == '\u2028', r == '\u2029':
			size += len(`\u0000`) - utf8.RuneLen(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"): // a byte that is not UTF-8
			size += len(`\u0000`) - 1
		}
	}
	return size
}

func appendEscaped(b []byte, c byte) []byte {
	const short = "\"\\\b\f\n\r\t"
	if i := bytes.IndexByte([]byte(short), c); i >= 0 {
		return append(b, '\\', `"\bfnrt`[i])
	}
	return fmt.Appendf(b, `\u%04x`, c)
}

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	digits := func() bool {
		n := 0
		for n < len(text) && '0' <= text[n] && text[n] <= '9' {
			n++
		}
		text = text[n:]
		return n > 0
	}
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	if len(text) > 0 && text[0] == '0' {
		text = text[1:]
	} else if !digits() {
		return false
	}
	if len(text) > 0 && text[0] == '.' {
		if text = text[1:]; !digits() {
			return false
		}
	}
	if len(text) > 0 && (text[0] == 'e' || text[0] == 'E') {
		if text = text[1:]; len(text) > 0 && (text[0] == '+' || text[0] == '-') {
			text = text[1:]
		}
		if !digits() {
			return false
		}
	}
	return text == ""
}
