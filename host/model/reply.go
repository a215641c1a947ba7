package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// reply is an answer as it is being read.
type reply struct {
	text     pieces
	calls    []*functionCall
	byIndex  map[string]*functionCall // the newest under each index
	choice   *int                     // index of the choice that counts; nil before the first
	refusal  pieces
	refused  bool
	cutOff   bool
	finish   string // why it ended, in the provider's word
	ended    bool   // nothing is missing
	served   string
	usage    tokens
	received int // bytes
	delta    func(string)
}

// functionCall is a call of the function that gives the answer, as it is being read.
type functionCall struct {
	id, name  string // empty where the provider leaves them out
	arguments pieces
}

// decodeFields decodes an object of a provider's. A field of another type than it should have is
// left out: only the answer itself must be right.
func decodeFields(text []byte, v any) error {
	err := json.Unmarshal(text, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil // json.Unmarshal has decoded all else
	}
	return err
}

// contentPart is a part of an answer's content.
type contentPart struct {
	Type        string
	ID, Name    string
	Text, Input json.RawMessage
	PartialJSON json.RawMessage `json:"partial_json"`
	StopReason  json.RawMessage `json:"stop_reason"`
}

// addContent adds the content of a message: a text, a part, or a list of them.
func (r *reply) addContent(index string, content json.RawMessage) {
	list := []json.RawMessage{content}
	if len(content) > 0 && content[0] == '[' {
		_ = json.Unmarshal(content, &list)
	}
	for _, each := range list {
		var part contentPart
		switch {
		case len(each) == 0:
		case each[0] == '"':
			r.write(each)
		case each[0] == '{' && decodeFields(each, &part) == nil:
			r.addPart(index, part)
		}
	}
}

// addPart adds a part of the content. Thoughts are none of the answer.
func (r *reply) addPart(index string, part contentPart) {
	switch part.Type {
	case "text", "output_text", "text_delta":
		r.write(part.Text)
	case "tool_use":
		if string(part.Input) == "{}" { // what it is called with may follow
			part.Input = nil
		}
		r.addCall(index, part.ID, cmp.Or(part.Name, functionName), part.Input)
	case "input_json_delta":
		r.addCall(index, "", "", part.PartialJSON)
	case "":
		r.write(part.Text)
		r.addCall(index, "", "", part.PartialJSON)
	}
}

// write adds a JSON string to the text of the answer.
func (r *reply) write(text json.RawMessage) {
	if len(text) > 0 && text[0] == '"' {
		r.text.add(text)
		r.show(&r.text)
	}
}

// addCall adds a part of a call of the function. A part without an index belongs to the last call;
// a part under another index, or with another id, begins a call.
func (r *reply) addCall(index, id, name string, arguments json.RawMessage) {
	if isBlank(arguments) && id == "" && name == "" {
		return
	}
	call := r.byIndex[index]
	if index == "" && len(r.calls) > 0 {
		call = r.calls[len(r.calls)-1]
	}
	if call == nil || id != "" && call.id != "" && id != call.id {
		call = &functionCall{}
		r.calls = append(r.calls, call)
	}
	if r.byIndex == nil {
		r.byIndex = map[string]*functionCall{}
	}
	r.byIndex[index] = call
	call.id, call.name = cmp.Or(call.id, id), cmp.Or(call.name, name)
	call.arguments.add(arguments)
	r.show(&call.arguments)
}

// show hands on what was added to a text.
func (r *reply) show(p *pieces) {
	if text := p.next(); text != "" {
		r.delta(text)
	}
}

// written returns the number of bytes that the model wrote.
func (r *reply) written() int {
	n := len(r.text.raw) + len(r.refusal.raw)
	for _, call := range r.calls {
		n += len(call.arguments.raw)
	}
	return n
}

// answer returns the text that is to be the JSON value: the function's arguments if it is called.
// Its error says that bytes of it are no text.
func (r *reply) answer() (string, error) {
	if len(r.calls) == 0 {
		return r.text.text()
	}
	text, err := r.arguments()
	return cmp.Or(text, "{}"), err
}

// arguments returns the arguments of the function: of several calls each once, one after the other.
// Where a call has not the whole of them, all belong together: some providers give each part an id
// or an index of its own.
func (r *reply) arguments() (string, error) {
	calls := r.calls
	isAnswer := func(c *functionCall) bool { return c.name == functionName }
	if slices.ContainsFunc(calls, isAnswer) {
		isOther := func(c *functionCall) bool { return c.name != "" && c.name != functionName }
		calls = slices.DeleteFunc(slices.Clone(calls), isOther)
	}
	var texts []string
	var all pieces
	seen := map[string]bool{"": true}
	whole := true
	for _, call := range calls {
		all.raw = append(all.raw, call.arguments.raw...)
		text, err := call.arguments.text()
		text = strings.TrimSpace(text)
		whole = whole && err == nil && (text == "" || json.Valid([]byte(text)))
		if !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	if whole {
		return strings.Join(texts, "\n"), nil
	}
	return all.text()
}

// end notes why the answer ended, in the words of either wire. A reason that says nothing is none.
func (r *reply) end(reason json.RawMessage) {
	if isBlank(reason) || string(reason) == `"null"` {
		return
	}
	word := string(reason)
	_ = json.Unmarshal(reason, &word)
	r.finish, r.ended = word, true
	switch word {
	case "length", "max_tokens", "model_context_window_exceeded":
		r.cutOff = true
	case "content_filter", "refusal":
		r.refused = true
	case "error":
		r.ended = false // of the provider's, in the middle
	}
}

// refuse notes a part of the model's refusal, if it is a text.
func (r *reply) refuse(text json.RawMessage) {
	if len(text) > 0 && text[0] == '"' && !isBlank(text) {
		r.refused = true
		r.refusal.add(text)
	}
}

// isBlank reports whether a value says nothing: it is missing, null, false, 0 or empty, or holds
// only such values.
func isBlank(value json.RawMessage) bool {
	if len(value) == 0 || string(value) == `""` {
		return true
	}
	if value[0] == '"' {
		return false
	}
	var v any
	return json.Unmarshal(value, &v) == nil && saysNothing(v)
}

func saysNothing(v any) bool {
	says := func(v any) bool { return !saysNothing(v) }
	switch v := v.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), says)
	case []any:
		return !slices.ContainsFunc(v, says)
	}
	return v == nil || v == false || v == 0.0 || v == ""
}
