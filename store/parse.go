package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// ParseMessages reads a JSON message, a JSON array of them, or one after the
// other (NDJSON). An error names the message by its number and changes
// nothing.
func ParseMessages(text []byte) ([]Message, error) {
	raws, err := splitJSON(text)
	if err != nil {
		return nil, err
	}
	messages := make([]Message, 0, len(raws))
	for i, raw := range raws {
		m, err := parseRaw(raw)
		if err != nil {
			if len(raws) == 1 {
				return nil, fmt.Errorf("message: %w", err)
			}
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func parseRaw(raw []byte) (m Message, err error) {
	v, err := DecodeGiven(raw, MaxDepth+1) // the message is one object around its data
	if err == nil {
		m, err = ParseMessage(v)
	}
	if err == nil {
		err = CheckDepth(m.Data.Value)
	}
	return m, err
}

func splitJSON(text []byte) ([]json.RawMessage, error) {
	if err := CheckEncoding(text); err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '[' {
		var raws []json.RawMessage
		if err := json.Unmarshal(trimmed, &raws); err != nil {
			return nil, jsonError(trimmed, err)
		}
		return raws, nil
	}
	var raws []json.RawMessage
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		switch err := d.Decode(&raw); {
		case err == nil:
			raws = append(raws, raw)
		case err == io.EOF && len(raws) > 0:
			return raws, nil
		default:
			return nil, jsonError(text, err)
		}
	}
}

// ParseMessage brings one decoded message of any accepted shape into canonical
// form (the table of protocol §1).
func ParseMessage(v any) (Message, error) {
	given, ok := v.(map[string]any)
	if !ok {
		return Message{}, fmt.Errorf("expected an object with a type, found %s", Describe(v))
	}
	typ, ok := given["type"].(string)
	if _, has := given["type"]; has && !ok {
		return Message{}, fmt.Errorf(`"type" must be a string, not %s (one of %s)`, Describe(given["type"]), typeNames)
	}
	if _, called := given["_tool"]; called && !ok {
		return Message{}, ErrCall
	}
	if !ok {
		return Message{}, errors.New(`no "type" (one of ` + typeNames + `)`)
	}
	p := parser{given: given, taken: make(map[string]bool, len(given))}
	m := Message{Type: Type(typ)}
	switch typ {
	case "data":
		p.data(&m)
	case "state", "input":
		p.inline(&m, typ)
	case "meta":
		m.Type, m.Kind = TypeData, "meta"
		p.content(&m, "meta")
	case "tool", "plan", "system", "text":
		field := m.Type.Content()
		p.content(&m, field)
		p.check(m.Data.Value, field, contents[m.Type])
		if m.Type == TypePlan {
			p.mode(&m)
		}
	default:
		return Message{}, fmt.Errorf("unknown type %q (one of %s)", typ, typeNames)
	}
	p.envelope(&m)
	if p.err != nil {
		return Message{}, fmt.Errorf("type %q: %w", typ, p.err)
	}
	return m, nil
}

// ErrCall is the error for a call in the place of a message.
var ErrCall = errors.New(`it is a call, and no message: it has "_tool" and no "type"`)

const typeNames = "data, state, input, tool, plan, system, text, meta"

// parser takes the fields of one message, remembers which it has taken, and
// keeps the first thing that is wrong.
type parser struct {
	given   map[string]any
	taken   map[string]bool
	unnamed bool // every plain field is data: no field has a meaning of its own
	err     error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) take(field string) (any, bool) {
	p.taken[field] = true
	v, ok := p.given[field]
	return v, ok
}

func (p *parser) text(field string) string {
	v, ok := p.take(field)
	s, isString := v.(string)
	if ok && !isString {
		p.fail("%q must be a string, not %s", field, Describe(v))
	}
	return s
}

func (p *parser) check(v any, field, want string) {
	if got := TypeName(v); got != want {
		p.fail("%q must be %s, not %s", field, article(want), article(got))
	}
}

func (p *parser) content(m *Message, field string) {
	if m.Data.Value, m.Data.Set = p.take(field); !m.Data.Set {
		p.fail("it has no %q", field)
	}
}

func (p *parser) mode(m *Message) {
	m.Mode = p.text("mode")
	if m.Mode != "" && m.Mode != "eager" && m.Mode != "lazy" {
		p.fail(`"mode" must be "eager" or "lazy", not %q`, m.Mode)
	}
}

func (p *parser) schema(m *Message) {
	v, ok := p.take("schema")
	if !ok {
		return
	}
	if _, isBool := v.(bool); !isBool {
		p.check(v, "schema", "object")
	}
	m.Schema = v
}

// data is {"type":"data", …}, and all that log --json prints of one.
func (p *parser) data(m *Message) {
	m.Kind = "data"
	if _, ok := p.given["kind"]; ok {
		m.Kind = p.text("kind")
		if !ValidKind(m.Kind) {
			p.fail("%w", badKind(m.Kind))
		}
	}
	m.Data.Value, m.Data.Set = p.take("data")
	p.schema(m)
	m.Description = p.text("description")
	if !m.Data.Set && m.Schema == nil {
		p.fail(`it has neither "data" nor "schema"`)
	}
}

func badKind(kind string) error {
	return fmt.Errorf("bad kind %q: a kind is letters, digits and _", kind)
}

// inline is {"type":"state", …}: the value stands under the type's own name,
// or its fields stand beside the type.
func (p *parser) inline(m *Message, kind string) {
	m.Type, m.Kind, p.unnamed = TypeData, kind, true
	p.schema(m)
	m.Description = p.text("description")
	fields := map[string]any{}
	for field, v := range p.given {
		if !strings.HasPrefix(field, "_") && field != "type" && field != "schema" && field != "description" {
			fields[field] = v
			p.taken[field] = true
		}
	}
	switch whole, ok := fields[kind]; {
	case ok && len(fields) == 1:
		m.Data = Some(whole)
	case len(fields) > 0:
		m.Data = Some(fields)
	case m.Schema == nil:
		p.fail("it holds no fields, no %q and no \"schema\"", kind)
	}
}

// envelope takes the fields that any message may have, and refuses the fields that are left over.
func (p *parser) envelope(m *Message) {
	m.Instance = p.text("_instance")
	if _, ok := p.given["_instance"]; ok && m.Instance == "" {
		p.fail(`"_instance" is empty: leave it out for a global message`)
	}
	if m.Instance == EveryInstance {
		p.fail(`"_instance" is "*", which stands for all of them: name one`)
	}
	if _, written := p.given["_call"]; (written || m.Instance != "") && m.Type != TypeData {
		p.fail("only data has an instance or a call that wrote it")
	}
	p.producer(m)
	p.take("type")
	if !p.unnamed {
		p.logged(m)
	}
	var unknown []string
	for field := range p.given {
		if !p.taken[field] {
			unknown = append(unknown, fmt.Sprintf("%q", field))
		}
	}
	if sort.Strings(unknown); len(unknown) > 0 {
		p.fail("unknown field %s", strings.Join(unknown, ", "))
	}
}

// logged takes the fields that a log adds when it prints a message. Only the date is kept: the
// others are assigned anew.
func (p *parser) logged(m *Message) {
	p.take("seq")
	p.take("context")
	p.take("call")
	if date := p.text("date"); date != "" {
		t, err := time.Parse(time.RFC3339, date)
		m.Date = t.UTC()
		if err != nil || !datable(t) {
			p.fail(`"date" is not an RFC 3339 time: %q`, date)
		}
	}
}

func (p *parser) producer(m *Message) {
	call, written := p.take("_call")
	method := Method(p.text("_outputMethod"))
	m.Written = p.text("_date")
	path := ""
	if !p.unnamed {
		path = p.text("path")
	}
	if !written {
		if method != "" || path != "" {
			p.fail(`"_outputMethod" and "path" are for messages that a call wrote: there is no "_call"`)
		}
		return
	}
	p.check(call, "_call", "object")
	if m.Written != "" {
		if _, err := time.Parse(time.RFC3339, m.Written); err != nil {
			p.fail(`"_date" is not an RFC 3339 time: %q`, m.Written)
		}
	}
	m.Producer, m.Method = call, method
	if err := method.Check(`"_outputMethod"`); err != nil {
		p.fail("%w", err)
	}
	if !m.Data.Set {
		p.fail("a call wrote it, but it holds no data")
	}
	if p.err == nil {
		m.Path, p.err = writtenPath(m, path)
	}
}

// writtenPath is where the message's call wrote: the path that the message
// names, else the one path of its call's output path that exists in its data.
func writtenPath(m *Message, text string) (Path, error) {
	var candidates []Path
	if text != "" {
		path, err := ParsePath(text)
		if err != nil {
			return Path{}, err
		}
		candidates = []Path{path}
	} else {
		output, _ := m.Producer.(map[string]any)["_outputPath"].(string)
		candidates = scanPaths(output)
	}
	var found []Path
	for _, path := range candidates {
		if _, ok := Dig(m.Data.Value, path); ok && path.Kind() == m.Kind && !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	if len(found) == 1 {
		if other := beside(m.Data.Value, found[0]); other != "" {
			return Path{}, fmt.Errorf("its data holds %s beside %s, where its call wrote", other, found[0])
		}
		return found[0], nil
	}
	where := "the call's _outputPath"
	if text != "" {
		where = "its path " + text
	}
	return Path{}, fmt.Errorf("can't tell where its call wrote: %s names %d paths that exist in its data of kind %q, not one", where, len(found), m.Kind)
}

// beside finds a key in data that does not lead to path, "" if there is none. An array on
// the way is left as it is: the history finds its elements.
func beside(data any, path Path) string {
	for _, segment := range path.Segments() {
		object, ok := data.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if key != segment {
				return strconv.Quote(key)
			}
		}
		data = object[segment]
	}
	return ""
}

// scanPaths finds the paths in the text of an output path, whatever stands
// between them.
func scanPaths(text string) []Path {
	var paths []Path
	for {
		i := strings.Index(text, Dagger)
		if i < 0 {
			return paths
		}
		path, n, err := ScanPath(text[i:])
		if err != nil {
			n = len(Dagger)
		} else {
			paths = append(paths, path)
		}
		text = text[i+n:]
	}
}

func article(noun string) string {
	if noun == "null" {
		return noun
	}
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
