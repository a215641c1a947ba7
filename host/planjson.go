package host

import (
	"bytes"
	"encoding/json"
	"strconv"

	"obelus/engine/lazyregexp"
	"obelus/engine/plan"
	"obelus/store"
)

func (g *Generation) jsonPlan(name string, source []byte) (*plan.Request, error) {
	p := &planReader{file: name, registry: g.registry}
	source = store.PlainJSON(bytes.TrimPrefix(source, []byte("\ufeff")))
	v, err := store.DecodeGiven(source, store.MaxDepth)
	if err != nil {
		return nil, p.fail(lineIn(err.Error()), "%s", err.Error())
	}
	lines := jsonLines(source)
	p.place = func(field string) int { return lines.fields[field] }
	var fields map[string]any
	switch v := v.(type) {
	case []any:
		fields = map[string]any{"calls": v}
	case map[string]any:
		if fields = v; isCall(v) {
			first := 1 + bytes.Count(source[:bytes.IndexByte(source, '{')], []byte("\n"))
			fields, lines = map[string]any{"calls": []any{v}}, planLines{calls: []int{first}}
		}
	default:
		return nil, p.fail(1, "a plan is a list of calls, or an object with calls, not %s", store.Describe(v))
	}
	request, err := p.readRequest(fields)
	if err != nil || request.IsModelPlanned() {
		return request, err
	}
	field := "calls"
	if _, ok := fields["plan"]; ok {
		field = "plan"
	}
	if isCall(fields[field]) {
		return nil, p.fail(p.fieldLine(field), "%s is a list of calls: put [ and ] around this one", field)
	}
	list, ok := fields[field].([]any)
	if !ok {
		return nil, p.fail(p.fieldLine(field), "%s must be a list of calls, not %s", field, store.Describe(fields[field]))
	}
	var messages []any
	for i, v := range list {
		switch {
		case isMessage(v):
			messages = append(messages, v)
		case i < len(lines.calls):
			request.Calls = append(request.Calls, plan.Source{Call: v, Line: lines.calls[i]})
		default:
			request.Calls = append(request.Calls, plan.Source{Call: v})
		}
	}
	return request, p.checkMixed(request, messages, p.addContext(request, messages))
}

// isCall reports whether a value of a plan is a call: an object with _tool.
func isCall(v any) bool {
	object, _ := v.(map[string]any)
	_, ok := object["_tool"]
	return ok
}

// isMessage reports whether an element of a plan is a message: an object with type that is no call.
func isMessage(v any) bool {
	object, _ := v.(map[string]any)
	_, ok := object["type"]
	return ok && !isCall(v)
}

var lineText = lazyregexp.New(`at line (\d+)`)

// lineIn returns the line that an error's text names.
func lineIn(text string) int {
	if m := lineText().FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		return line
	}
	return 1
}

// planLines has the lines of the parts of a JSON plan.
type planLines struct {
	calls  []int
	fields map[string]int // of a request, by name
}

// jsonLines reads a plan once more, for the lines of its values. The text must be valid.
func jsonLines(source []byte) (lines planLines) {
	r := &placeReader{source: source, d: json.NewDecoder(bytes.NewReader(source)), line: 1}
	first, _ := r.d.Token()
	if first == json.Delim('[') {
		lines.calls = r.elements()
		return lines
	}
	lines.fields = map[string]int{}
	for r.d.More() {
		token, _ := r.d.Token()
		key, _ := token.(string)
		r.next()
		lines.fields[key] = r.line
		if (key == "calls" || key == "plan") && r.source[r.at] == '[' {
			r.d.Token()
			lines.calls = r.elements()
			r.d.Token()
			continue
		}
		r.skip()
	}
	return lines
}

// placeReader knows the line of the value that its decoder reads next.
type placeReader struct {
	source []byte
	d      *json.Decoder
	at     int // offset up to which lines are counted
	line   int
}

// next moves to the beginning of the next value.
func (r *placeReader) next() {
	offset := int(r.d.InputOffset())
	for offset < len(r.source) && bytes.IndexByte([]byte(" \t\r\n,:"), r.source[offset]) >= 0 {
		offset++
	}
	r.line += bytes.Count(r.source[r.at:offset], []byte("\n"))
	r.at = offset
}

func (r *placeReader) skip() {
	var ignored json.RawMessage
	_ = r.d.Decode(&ignored)
}

// elements returns the line of each element of an array that has just begun.
func (r *placeReader) elements() (lines []int) {
	for r.d.More() {
		r.next()
		lines = append(lines, r.line)
		r.skip()
	}
	return lines
}
