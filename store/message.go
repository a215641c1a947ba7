package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Type is the type of a message in its canonical form (protocol §1).
type Type string

// The types of canonical messages. A message given as state, input or meta becomes data of that
// kind.
const (
	TypeData   Type = "data"   // data of a kind, a schema for it, or both
	TypeTool   Type = "tool"   // tool definitions by name
	TypePlan   Type = "plan"   // a list of calls
	TypeSystem Type = "system" // prose for a model
	TypeText   Type = "text"   // prose for a model
)

// Method is how a call's write joins the value that was there (protocol §3).
type Method string

// The methods. The zero Method means [Set] where a call wrote the message.
const (
	Set    Method = "set"
	Merge  Method = "merge"
	Assign Method = "assign"
	Push   Method = "push"
	Concat Method = "concat"
)

// Methods lists the methods in the order in which they are documented.
var Methods = []Method{Set, Merge, Assign, Push, Concat}

// KindError is the kind whose every message replaces the one before.
const KindError = "error"

// EveryInstance is the name of no instance: a call's _instance "*" is for each that
// there is.
const EveryInstance = "*"

// Message is one entry of a context's log in canonical form, which
// [Message.Check] holds it to. Messages that the store hands out are shared and
// must not be changed.
type Message struct {
	Context string    // the context that it belongs to
	Seq     int64     // 1, 2, 3 … without gaps in its context
	Date    time.Time // date of the append, UTC, milliseconds
	Type    Type

	Kind     string // of a data message, else empty
	Instance string // empty for a global message

	// Data is the message's content: for data, a value of the whole kind; for a tool, plan, system
	// or text message, its definitions, calls or prose. A message that only declares a schema has
	// none.
	Data Optional

	Schema      any    // JSON Schema that it declares for its kind, or nil
	Description string // of a data message
	Mode        string // of a plan: eager, lazy, or empty for eager

	// Producer is the call that wrote the message, as issued; nil for a foreign message. The fields
	// below are set only with it.
	Producer any
	Call     string // the call's place in its context, "1.2"
	Path     Path   // where it wrote
	Method   Method // only if the call gave one
	Written  string // when the call wrote it, RFC 3339
}

// Op is a message as the one operation that it is (protocol §3): a value that
// joins a kind's value at a path by a method.
type Op struct {
	Seq      int64
	Instance string
	Path     Path
	Method   Method
	Value    any
}

// Op gives the operation that the message stands for; ok is false for one that
// holds no value of a kind.
func (m *Message) Op() (op Op, ok bool) {
	if m.Type != TypeData || !m.Data.Set {
		return Op{}, false
	}
	op = Op{Seq: m.Seq, Instance: m.Instance, Path: KindPath(m.Kind), Method: Merge, Value: m.Data.Value}
	switch {
	case m.Kind == KindError:
		op.Method = Set
	case m.Producer != nil:
		op.Path, op.Method = m.Path, m.Method
		if op.Method == "" {
			op.Method = Set
		}
		op.Value, ok = Dig(m.Data.Value, m.Path)
		return op, ok
	}
	return op, true
}

// Touches lists the paths under which an index must hold the operation, so that a search for a path
// finds it among the entries at, above and below that path: the leaves of a merge, or, where there
// are many, the deepest path that all of them have in common; the path itself for every other
// method.
func (op Op) Touches() []Path {
	if op.Method != Merge {
		return []Path{op.Path}
	}
	leaves := appendLeaves(nil, op.Path, op.Value)
	if len(leaves) > maxLeaves {
		return []Path{op.unlisted()}
	}
	sortPaths(leaves)
	return leaves
}

func sortPaths(paths []Path) {
	slices.SortFunc(paths, func(a, b Path) int { return strings.Compare(a.text, b.text) })
}

// WritesAt reports whether the operation leaves something at a path: at its own, or, of an
// object that is merged, within it.
func (op Op) WritesAt(path Path) bool {
	if path == op.Path || op.Method != Merge {
		return path == op.Path
	}
	if !op.Path.Contains(path) {
		return false
	}
	_, ok := dig(op.Value, op.Path.below(path))
	return ok
}

// WritesBelow reports whether the operation leaves something below a path.
func (op Op) WritesBelow(path Path) bool {
	if path != op.Path && path.Contains(op.Path) {
		return true
	}
	if op.Method != Merge || !op.Path.Contains(path) {
		return false
	}
	v, _ := dig(op.Value, op.Path.below(path))
	object, ok := v.(map[string]any)
	return ok && len(object) > 0
}

func appendLeaves(leaves []Path, at Path, v any) []Path {
	object, ok := v.(map[string]any)
	if !ok || len(object) == 0 {
		return append(leaves, at)
	}
	for key, e := range object {
		if leaves = appendLeaves(leaves, at.Child(key), e); len(leaves) > maxLeaves {
			return leaves
		}
	}
	return leaves
}

// Check holds a message that a program made to the canonical form (protocol §1):
// what [ParseMessage] gives has it. Its values must be JSON's already.
func (m *Message) Check() error {
	if err := m.checkContent(); err != nil {
		return err
	}
	switch {
	case !datable(m.Date):
		return fmt.Errorf("its date %w", CheckDate(m.Date))
	case m.Type != TypeData && (m.Kind != "" || m.Instance != "" || m.Schema != nil || m.Description != "" || m.Producer != nil):
		return fmt.Errorf("only data has a kind, an instance, a schema, a description or a call that wrote it, and its type is %q", m.Type)
	case m.Instance == EveryInstance:
		return fmt.Errorf("its instance is %q, which stands for all of them: name one", m.Instance)
	case m.Mode != "" && (m.Type != TypePlan || m.Mode != "eager" && m.Mode != "lazy"):
		return fmt.Errorf(`its mode is %q: that of a plan is "eager" or "lazy", and nothing else has one`, m.Mode)
	}
	for _, text := range []struct{ name, text string }{{"instance", m.Instance}, {"description", m.Description}, {"call", m.Call}} {
		if !utf8.ValidString(text.text) {
			return fmt.Errorf("its %s %q is not valid UTF-8", text.name, text.text)
		}
	}
	return m.checkProducer()
}

// contents is the JSON type that a message of each type holds; data holds anything.
var contents = map[Type]string{TypeData: "", TypeTool: "object", TypePlan: "array", TypeSystem: "string", TypeText: "string"}

// Valid reports whether a canonical message may have the type.
func (t Type) Valid() bool {
	_, ok := contents[t]
	return ok
}

// Check returns an error with the list of [Methods] if m is neither empty nor one of them. name is
// the word for m in the error.
func (m Method) Check(name string) error {
	if m == "" || slices.Contains(Methods, m) {
		return nil
	}
	known := make([]string, len(Methods))
	for i, method := range Methods {
		known[i] = string(method)
	}
	return fmt.Errorf("unknown %s %q (one of %s)", name, m, strings.Join(known, ", "))
}

// CheckDate refuses a time that no log can hold, since [FormatDate] does not write it as it
// can be read.
func CheckDate(t time.Time) error {
	if !datable(t) {
		return fmt.Errorf("%s has no year of four digits", t)
	}
	return nil
}

// datable reports whether [FormatDate] writes a time so that it can be read back.
func datable(t time.Time) bool {
	year := t.UTC().Year()
	return 0 <= year && year <= 9999
}

func (m *Message) checkContent() error {
	switch want := contents[m.Type]; {
	case !m.Type.Valid():
		return fmt.Errorf("unknown type %q (one of data, tool, plan, system, text; state, input and meta are kinds of data)", m.Type)
	case m.Type == TypeData && !ValidKind(m.Kind):
		return badKind(m.Kind)
	case m.Data.Value != nil && !m.Data.Set:
		return errors.New("it has data that are not set: store.Some sets them")
	case m.Type == TypeData && !m.Data.Set && m.Schema == nil:
		return errors.New("it has neither data nor a schema")
	case want != "" && TypeName(m.Data.Value) != want:
		return fmt.Errorf("what a message of type %q holds must be %s, not %s", m.Type, article(want), article(TypeName(m.Data.Value)))
	}
	return nil
}

// checkProducer checks the fields about the call that wrote the message.
func (m *Message) checkProducer() error {
	if m.Producer == nil {
		if m.Call != "" || m.Path != (Path{}) || m.Method != "" || m.Written != "" {
			return errors.New("a call, a path, a method and a time of writing are for messages that a call wrote: it has no producer")
		}
		return nil
	}
	if !m.Data.Set {
		return errors.New("a call wrote it, but it holds no data")
	}
	if _, ok := m.Producer.(map[string]any); !ok {
		return fmt.Errorf("its producer must be an object, not %s", article(TypeName(m.Producer)))
	}
	if err := m.Method.Check("method"); err != nil {
		return err
	}
	if _, ok := Dig(m.Data.Value, m.Path); !ok || m.Path.Kind() != m.Kind {
		return fmt.Errorf("its path %q names no value that the message of kind %s holds", m.Path, m.Kind)
	}
	if _, err := time.Parse(time.RFC3339, m.Written); m.Written != "" && err != nil {
		return fmt.Errorf("when it was written is not an RFC 3339 time: %q", m.Written)
	}
	return nil
}

// FormatDate is how dates are written everywhere: RFC 3339, UTC, milliseconds.
func FormatDate(t time.Time) string {
	t = t.UTC()
	// A layout that package time formats without parsing it.
	b := t.AppendFormat(make([]byte, 0, 24), time.RFC3339)
	ms := t.Nanosecond() / 1e6
	return string(append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'))
}

// MarshalJSON writes the message as log --json prints it; [ParseMessage] takes
// it back.
func (m Message) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	field := func(name string, v any) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", name, EncodeJSON(v))
	}
	text := func(name, v string) {
		if v != "" {
			field(name, v)
		}
	}
	field("seq", m.Seq)
	text("context", m.Context)
	field("date", FormatDate(m.Date))
	field("type", string(m.Type))
	text("kind", m.Kind)
	text("_instance", m.Instance)
	text("path", m.Path.String())
	if m.Data.Set {
		field(m.Type.Content(), m.Data.Value)
	}
	if m.Schema != nil {
		field("schema", m.Schema)
	}
	text("description", m.Description)
	text("mode", m.Mode)
	if m.Producer != nil {
		field("_call", m.Producer)
	}
	text("_date", m.Written)
	text("_outputMethod", string(m.Method))
	text("call", m.Call)
	return append(append([]byte{'{'}, b.Bytes()...), '}'), nil
}

// Content is the field of a message of this type that holds its content: "data",
// "message" of a system message, and so on.
func (t Type) Content() string {
	if t == TypeSystem {
		return "message"
	}
	return string(t)
}
