package yaml

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"obelus/luastd/internal/formats"
)

// Encode writes a value, until enough returns true for the size of the text so far.
func Encode(v any, enough func(size int) bool) string {
	if text, ok := v.(string); ok && strings.Contains(text, "\n") {
		return inQuotes(text) + "\n" // a block would need an indent
	}
	w := writer{enough: enough}
	if !w.value(v, 0, false) {
		w.b.WriteByte('\n')
	}
	return strings.TrimLeft(w.b.String(), " \n")
}

// writer writes values in block style, so that older readers too read them as they are.
type writer struct {
	b      strings.Builder
	enough func(size int) bool
}

// value writes the part after "name:" or "-" at a depth: a scalar on the same line, or several
// lines, whose first one may be on the same line after "-". It reports whether the last line has
// ended.
func (w *writer) value(v any, depth int, listed bool) (ended bool) {
	indent := strings.Repeat("  ", depth)
	lead := "\n" + indent
	if listed {
		lead = " "
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.b.WriteString(" {}")
			return false
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if w.enough(w.b.Len()) {
				break
			}
			w.b.WriteString(lead + oneLine(name) + ":")
			w.below(v[name], depth, false)
			lead = indent
		}
		return true
	case []any:
		if len(v) == 0 {
			w.b.WriteString(" []")
			return false
		}
		for _, element := range v {
			if w.enough(w.b.Len()) {
				break
			}
			w.b.WriteString(lead + "-")
			w.below(element, depth, true)
			lead = indent
		}
		return true
	case string:
		if lines, mark, ok := blockLines(v); ok {
			w.b.WriteString(mark + "\n")
			for _, line := range lines {
				w.b.WriteString(indent + line + "\n")
			}
			return true
		}
		w.b.WriteString(" " + oneLine(v))
		return false
	}
	text, _ := formats.ScalarText(v)
	if v == nil {
		text = "null"
	} else if _, ok := v.(json.Number); ok && !strings.Contains(text, ".") {
		text = strings.Replace(strings.ToLower(text), "e", ".0e", 1) // a number to older readers too
		if text == "-0" {
			text = "-0.0" // as a whole number it would lose its sign
		}
	}
	w.b.WriteString(" " + text)
	return false
}

func (w *writer) below(v any, depth int, listed bool) {
	if !w.value(v, depth+1, listed) {
		w.b.WriteByte('\n')
	}
}

// plainPattern matches text that is itself to every reader of YAML, except for
// reservedWords. A pattern with all letters takes so long
// to compile that no start of the program should wait for it.
var (
	plainPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[\pL_/][\pL\pN_./@%+,-]*( [\pL\pN_./@%+(-][\pL\pN_./@%+,()-]*)*$`)
	})
	reservedWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

// oneLine returns text on one line: as it is if that is safe, else in quotes, as in JSON.
func oneLine(text string) string {
	if len(text) < 200 && plainPattern().MatchString(text) && !slices.Contains(reservedWords, strings.ToLower(text)) {
		return text
	}
	return inQuotes(text)
}

// inQuotes returns text in double quotes.
func inQuotes(text string) string {
	var b strings.Builder
	for _, r := range formats.CompactJSON(text) {
		if invisible(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// invisible reports whether a character may stand as it is in JSON and not in YAML, or ends a line
// there.
func invisible(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// blockLines returns text as the lines of a block, if they are printable, and none is empty or has
// spaces at either end, about which readers differ.
func blockLines(text string) (lines []string, mark string, ok bool) {
	body, ended := strings.CutSuffix(text, "\n")
	if mark = " |-"; ended {
		mark = " |"
	}
	if lines = strings.Split(body, "\n"); len(lines) < 2 && !ended {
		return nil, "", false
	}
	for _, line := range lines {
		if line == "" || line != strings.TrimSpace(line) || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || invisible(r) }) {
			return nil, "", false
		}
	}
	return lines, mark, true
}
