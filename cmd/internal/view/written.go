package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Written makes lines for a person of the text that a model writes, which comes in pieces. A call
// of a plan is a line as soon as its text is complete, and so are the plan's output, any other
// JSON, and each line of prose. The zero Written is ready for use.
type Written struct {
	text     []byte
	read     int    // how much of the text has been read
	line     int    // where the line of prose, or the JSON, begins
	inLine   bool   // the line of prose has more than blanks
	open     []byte // the brackets that are open, outermost first
	element  int    // where the latest element of an array of the outermost object begins
	inString bool
	escaped  bool
	quote    int    // where the latest string begins
	name     string // the latest string in the outermost object, which may be the name of a member
	isPlan   bool   // the JSON has calls
}

// Add takes the next piece and returns the lines that it completes. An empty piece ends the text,
// and the next piece begins another one.
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
	switch rest := strings.TrimSpace(string(w.text[w.line:])); {
	case w.isPlan:
		lines = append(lines, "(the text of the plan was cut off)")
	case rest != "":
		lines = append(lines, rest)
	}
	*w = Written{}
	return lines
}

// insideCalls are the open brackets around the calls of a plan.
const insideCalls = "{["

// readByte reads the byte at w.read. It returns a line if one is complete with it.
func (w *Written) readByte(b byte) (line string) {
	switch {
	case w.inString:
		w.inString = b != '"' || w.escaped
		w.escaped = b == '\\' && !w.escaped
		if !w.inString && len(w.open) == 1 {
			w.name = string(w.text[w.quote:w.read])
		}
	case len(w.open) == 0:
		return w.readProse(b)
	case b == '"':
		w.inString, w.quote = true, w.read+1
	case b == '{' || b == '[':
		if string(w.open) == insideCalls {
			w.element = w.read
		}
		w.isPlan = w.isPlan || b == '[' && len(w.open) == 1 && w.name == "calls"
		w.open = append(w.open, b)
	case b == '}' || b == ']':
		w.open = w.open[:len(w.open)-1]
		if string(w.open) == insideCalls && w.name == "calls" {
			line = call(w.text[w.element : w.read+1])
		}
		if len(w.open) == 0 {
			line = w.jsonEnds()
		}
	}
	return line
}

// readProse reads a byte outside JSON, which begins where a line begins with a bracket.
func (w *Written) readProse(b byte) (line string) {
	switch {
	case b == '{' && !w.inLine:
		w.line = w.read
		w.open = append(w.open, b)
	case b == '\n':
		line = strings.TrimSpace(string(w.text[w.line:w.read]))
		if strings.HasPrefix(line, "```") { // Markdown fences JSON with it
			line = ""
		}
		w.line, w.inLine = w.read+1, false
	case b != ' ' && b != '\t' && b != '\r':
		w.inLine = true
	}
	return line
}

// jsonEnds returns the line of JSON that ends at w.read.
func (w *Written) jsonEnds() (line string) {
	whole := w.text[w.line : w.read+1]
	isPlan := w.isPlan
	w.line, w.isPlan = w.read+1, false
	var plan struct{ Output json.RawMessage }
	switch {
	case !isPlan:
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
	var tool string
	if json.Unmarshal(arguments["_tool"], &tool) != nil || tool == "" {
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
	apart := func(r rune) bool { return r == ' ' || r == '"' || !unicode.IsPrint(r) }
	if json.Unmarshal(value, &text) == nil && text != "" && !strings.ContainsFunc(text, apart) {
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
