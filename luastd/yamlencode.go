package luastd

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

// encodeYAML writes a value, until enough returns true for the size of the text so far. It stands
// in for the library's writer, which escapes emoji, and so writes no block of lines that has one.
func encodeYAML(v any, enough func(size int) bool) string {
	if text, ok := v.(string); ok && strings.Contains(text, "\n") {
		return yamlQuoted(text) + "\n" // a block would need an indent
	}
	w := yamlWriter{enough: enough}
	w.value(v, "", "\n")
	return strings.TrimLeft(w.b.String(), " \n")
}

// yamlWriter writes values in block style, so that older readers too read them as they are.
type yamlWriter struct {
	b      strings.Builder
	enough func(size int) bool
}

// value writes the part after "name:" or "-", to the end of its last line: a scalar, or lines at an
// indent, with lead before the first of them.
func (w *yamlWriter) value(v any, indent, lead string) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.b.WriteString(" {}\n")
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if w.enough(w.b.Len()) {
				break
			}
			w.b.WriteString(lead + yamlOneLine(name) + ":")
			w.value(v[name], indent+"  ", "\n"+indent+"  ")
			lead = indent
		}
	case []any:
		if len(v) == 0 {
			w.b.WriteString(" []\n")
		}
		for _, element := range v {
			if w.enough(w.b.Len()) {
				break
			}
			w.b.WriteString(lead + "-")
			w.value(element, indent+"  ", " ")
			lead = indent
		}
	case string:
		if isYAMLBlock(v) {
			text, ended := strings.CutSuffix(v, "\n")
			mark := " |-\n"
			if ended {
				mark = " |\n"
			}
			w.b.WriteString(mark + indent + strings.ReplaceAll(text, "\n", "\n"+indent) + "\n")
			return
		}
		w.b.WriteString(" " + yamlOneLine(v) + "\n")
	case json.Number:
		text := strings.ToLower(string(v))
		if !strings.Contains(text, ".") {
			text = strings.Replace(text, "e", ".0e", 1) // a number to older readers too
		}
		if text == "-0" {
			text = "-0.0" // as a whole number it would lose its sign
		}
		w.b.WriteString(" " + text + "\n")
	default:
		w.b.WriteString(" " + formats.CompactJSON(v) + "\n")
	}
}

// yamlPlain matches text that is itself to every reader of YAML, except for
// yamlReserved. A pattern with all letters takes so long
// to compile that no start of the program should wait for it.
var (
	yamlPlain = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[\pL_/][\pL\pN_./@%+,-]*( [\pL\pN_./@%+(-][\pL\pN_./@%+,()-]*)*$`)
	})
	yamlReserved = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

// yamlOneLine returns text on one line: as it is if that is safe, else in quotes, as in JSON.
func yamlOneLine(text string) string {
	if len(text) < 200 && yamlPlain().MatchString(text) && !slices.Contains(yamlReserved, strings.ToLower(text)) {
		return text
	}
	return yamlQuoted(text)
}

// yamlQuoted returns text in double quotes.
func yamlQuoted(text string) string {
	var b strings.Builder
	for _, r := range formats.CompactJSON(text) {
		if isInvisible(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isInvisible reports whether a character may stand as it is in JSON and not in YAML, or ends a
// line there.
func isInvisible(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// isYAMLBlock reports whether text is written as a block: it has a line end, its lines are
// printable, and none is empty or has spaces at either end, about which readers differ.
func isYAMLBlock(text string) bool {
	if !strings.Contains(text, "\n") {
		return false
	}
	isForeign := func(r rune) bool { return r < ' ' || isInvisible(r) }
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		isTrimmed := line != "" && line == strings.TrimSpace(line)
		if !isTrimmed || strings.ContainsFunc(line, isForeign) {
			return false
		}
	}
	return true
}
