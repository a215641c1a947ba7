package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Written makes lines for a person of the text that a model writes, which comes in pieces. A call
// of a plan is a line as soon as its text is complete, and so are the plan's output, any other
// JSON, and each line of prose. The zero Written is ready for use.
type Written struct {
	text     []byte
	read     int    // how much of the text has been read
	line     int    // where the line of prose, or the JSON, begins
	open     []byte // the brackets that are open, outermost first
	element  int    // where the latest element of an array of the outermost object begins
	inString bool
	escaped  bool
	isPlan   bool // the JSON has had a call
}

// Add takes the next piece and returns the lines that it completes. An empty piece ends the text:
// what comes after it is another one.
func (w *Written) Add(piece string) (lines []string) {
	w.text = append(w.text, piece...)
	for ; w.read < len(w.text); w.read++ {
		if line := w.readByte(w.text[w.read]); line != "" {
			lines = append(lines, line)
		}
	}
	if piece != "" {
		return lines
	}
	rest := w.text[w.line:]
	if line := strings.TrimSpace(string(rest)); line != "" && !w.isPlan {
		lines = append(lines, line)
	}
	*w = Written{}
	return lines
}

// Where the calls of a plan are: in an array in the outermost object.
const insideCalls = "{["

// readByte reads the byte at w.read. It returns a line if one is complete with it.
func (w *Written) readByte(b byte) (line string) {
	switch {
	case w.inString:
		w.inString = b != '"' || w.escaped
		w.escaped = b == '\\' && !w.escaped
	case len(w.open) == 0:
		return w.readProse(b)
	case b == '"':
		w.inString = true
	case b == '{' || b == '[':
		if string(w.open) == insideCalls {
			w.element = w.read
		}
		w.open = append(w.open, b)
	case b == '}' || b == ']':
		w.open = w.open[:len(w.open)-1]
		if string(w.open) == insideCalls {
			line = call(w.text[w.element : w.read+1])
			w.isPlan = w.isPlan || line != ""
		}
		if len(w.open) == 0 {
			line = w.jsonEnds()
		}
	}
	return line
}

// readProse reads a byte outside JSON, which begins where a line begins with a bracket.
func (w *Written) readProse(b byte) (line string) {
	before := strings.TrimSpace(string(w.text[w.line:w.read]))
	switch {
	case b == '{' && before == "":
		w.line, w.isPlan = w.read, false
		w.open = append(w.open, b)
	case b == '\n':
		w.line = w.read + 1
		if !strings.HasPrefix(before, "```") { // what stands around JSON in Markdown
			line = before
		}
	}
	return line
}

// jsonEnds returns the line of JSON that ends at w.read.
func (w *Written) jsonEnds() (line string) {
	whole := w.text[w.line : w.read+1]
	w.line = w.read + 1
	var plan struct{ Output json.RawMessage }
	switch {
	case !w.isPlan:
		return readable(whole)
	case json.Unmarshal(whole, &plan) == nil && len(plan.Output) > 0 && string(plan.Output) != "null":
		return "output " + readable(plan.Output)
	}
	return ""
}

// call returns the line of a call of a plan; none if the text is no call.
func call(text []byte) (line string) {
	var arguments map[string]json.RawMessage
	if json.Unmarshal(text, &arguments) != nil {
		return ""
	}
	tool := readable(arguments["_tool"])
	if tool == "" {
		return ""
	}
	delete(arguments, "_tool")
	parts := []string{tool}
	for _, name := range slices.SortedFunc(maps.Keys(arguments), ownFirst) {
		parts = append(parts, name+"="+readable(arguments[name]))
	}
	return strings.Join(parts, " ")
}

// readable returns JSON on one line, and a text of one word without its quotes.
func readable(value []byte) string {
	var text string
	if json.Unmarshal(value, &text) == nil && text != "" && !strings.ContainsAny(text, " \t\n\"") {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// ownFirst sorts a tool's own parameters before those that every call has.
func ownFirst(a, b string) int {
	if meta := strings.HasPrefix(a, "_"); meta != strings.HasPrefix(b, "_") {
		if meta {
			return 1
		}
		return -1
	}
	return cmp.Compare(a, b)
}
