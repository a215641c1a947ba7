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
	v, err := store.DecodeGiven(source, store.MaxDepth)
	source = bytes.TrimPrefix(source, []byte("\ufeff"))
	if err != nil {
		return nil, p.fail(lineIn(err.Error()), "%s", err.Error())
	}
	switch v := v.(type) {
	case []any:
		return &plan.Request{Name: name, Calls: jsonCalls(v, jsonLines(source).calls)}, nil
	case map[string]any:
		if _, ok := v["_tool"]; ok {
			return nil, p.fail(1, "a plan is a list of calls: put [ and ] around this one")
		}
		lines := jsonLines(source)
		p.place = func(field string) int { return lines.fields[field] }
		request, err := p.readRequest(v)
		if err != nil {
			return nil, err
		}
		field := "calls"
		if _, ok := v["plan"]; ok {
			field = "plan"
		}
		calls, ok := v[field].([]any)
		if one, _ := v[field].(map[string]any); one["_tool"] != nil {
			return nil, p.fail(p.fieldLine(field), "%s is a list of calls: put [ and ] around this one", field)
		}
		if !ok {
			return nil, p.wrongField(field, "a list of calls", v[field])
		}
		request.Calls = jsonCalls(calls, lines.calls)
		return request, nil
	}
	return nil, p.fail(1, "a plan is a list of calls, or an object with calls, not %s", store.Describe(v))
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

func jsonCalls(list []any, lines []int) []plan.Source {
	calls := make([]plan.Source, len(list))
	for i := range calls {
		calls[i].Call = list[i]
		if i < len(lines) {
			calls[i].Line = lines[i]
		}
	}
	return calls
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
