// Package formats holds what readers and writers of text formats share: bounds, encodings,
// positions, and texts of values.
package formats

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ByteOrderMark may stand before a text.
const ByteOrderMark = "\ufeff"

// MaxDepth bounds the nesting of JSON that scripts read.
const MaxDepth = 128

// WideEncoding names the encoding of text that is UTF-16 or UTF-32, which a byte order mark or
// zero bytes beside the first characters show; it is empty for all other text.
func WideEncoding(text string) string {
	start := text[:min(len(text), 4)]
	zeros := 0 // a bit for each byte of start
	for i := range len(start) {
		if start[i] == 0 {
			zeros |= 1 << i
		}
	}
	switch {
	case start == "\xff\xfe\x00\x00", start == "\x00\x00\xfe\xff",
		len(start) == 4 && (zeros == 0b1110 || zeros == 0b0111):
		return "UTF-32"
	case strings.HasPrefix(start, "\xff\xfe"), strings.HasPrefix(start, "\xfe\xff"),
		len(start) == 4 && (zeros == 0b1010 || zeros == 0b0101),
		len(start) == 2 && (zeros == 0b10 || zeros == 0b01):
		return "UTF-16"
	}
	return ""
}

// Position returns an offset in a text for people, as its line and column.
func Position(text string, offset int) string {
	before := text[:max(0, min(offset, len(text)))]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d column %d", line, column)
}

// IsDeeper reports whether a value is nested deeper than left.
func IsDeeper(v any, left int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if left == 0 || IsDeeper(e, left-1) {
				return true
			}
		}
		return left == 0
	case []any:
		for _, e := range v {
			if left == 0 || IsDeeper(e, left-1) {
				return true
			}
		}
		return left == 0
	}
	return false
}

// ScalarText returns the text of a string, a number or a boolean. ok is false for other values.
func ScalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// CompactJSON returns a value as JSON on one line.
func CompactJSON(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // v is JSON
	}
	return strings.TrimSuffix(b.String(), "\n")
}
