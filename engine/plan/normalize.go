package plan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"obelus/engine/internal/crash"
	"obelus/engine/internal/jsonvalue"
	"obelus/store"
)

// Values of a Go program become JSON once, on their way in ([store.FromGo]). From there on a value
// is the same whether it has been in the log or not: the outcome of a run must not depend on
// whether it was interrupted.

// NormalizeResult makes JSON of the result of an activity. Results of scripts are JSON already, but
// an embedder may have wrapped one in Go.
func NormalizeResult(name string, res Result, err error) (Result, error) {
	var wrong error
	switch {
	case err != nil:
		err, wrong = NormalizeError(err)
	case res.Message != nil:
		res.Message, wrong = NormalizeObject(res.Message, "result")
	default:
		res.Value, wrong = store.FromGo(res.Value, "result")
	}
	if wrong != nil {
		return Result{}, fmt.Errorf("activity %s: %w", name, wrong)
	}
	return res, err
}

// NormalizeError is an error of a function in Go. If a [*Failure] is part of it,
// whose fields have to become values, they do in one that stands before it.
func NormalizeError(given error) (err, wrong error) {
	var failure *Failure
	isNil := isNilPointer(given) // errors.As must not unwrap it
	is := !isNil && errors.As(given, &failure)
	if isNil || is && failure == nil {
		return nil, errors.New("its error is a nil pointer, which is not nil: it must give nil itself where nothing is wrong")
	}
	if !is {
		return textOnce(given), nil
	}
	fields, wrong := normalizeFields(failure.Fields)
	switch _, says := failure.Fields["message"].(string); {
	case wrong != nil && says:
		return nil, fmt.Errorf("%w; the failure says: %s", wrong, given)
	case wrong != nil:
		return nil, wrong
	}
	failure = &Failure{Fields: fields, Loose: failure.Loose}
	if _, plain := given.(*Failure); plain {
		return failure, nil
	}
	return &normalizedFailure{textOnce(given), failure}, nil
}

func isNilPointer(err error) bool {
	v := reflect.ValueOf(err)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// textOnce returns an error whose text is read now: reading it may panic, which only the caller of
// the function recovers.
func textOnce(err error) error {
	text := err.Error()
	if text == "" {
		text = "it failed, and its error says nothing"
	}
	return &fixedText{text, err}
}

// fixedText is an error whose text is known.
type fixedText struct {
	text string
	err  error
}

func (e *fixedText) Error() string { return e.text }

func (e *fixedText) Unwrap() error { return e.err }

// normalizedFailure is an error with a failure whose fields have become values.
type normalizedFailure struct {
	given   error
	failure *Failure
}

func (e *normalizedFailure) Error() string { return e.given.Error() }

func (e *normalizedFailure) Unwrap() []error { return []error{e.failure, e.given} }

// normalizeFields makes JSON of the fields of a failure. Each may be as deep as a value may: see
// readable. Texts in another encoding are repaired, so that the failure is not lost.
func normalizeFields(given map[string]any) (map[string]any, error) {
	fields := make(map[string]any, len(given))
	for _, name := range jsonvalue.SortedKeys(given) {
		field := given[name]
		if err, ok := field.(error); ok && name == "message" && !isNilPointer(err) {
			field = err.Error()
		}
		value, err := store.FromGo(field, "error."+name)
		if err != nil {
			var mended bool
			if value, mended = validTexts(field); !mended {
				return nil, err
			}
		}
		fields[ValidText(name)] = value
	}
	if len(fields) == 0 {
		fields["message"] = "failed" // as for a script's
	}
	return fields, nil
}

// ValidText returns a text in which U+FFFD replaces the bytes that are not valid UTF-8.
func ValidText(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// validTexts is the JSON value of one whose texts are not valid UTF-8, if nothing
// else is wrong with it.
func validTexts(given any) (any, bool) {
	if text, ok := given.(string); ok {
		return ValidText(text), true
	}
	text, err := json.Marshal(given) // repairs texts that it encodes itself
	if err != nil {
		return nil, false
	}
	var read any
	d := json.NewDecoder(bytes.NewReader(bytes.ToValidUTF8(text, []byte("\ufffd"))))
	d.UseNumber()
	if err := d.Decode(&read); err != nil { // repairs half characters
		return nil, false
	}
	v, err := store.FromGo(read, "")
	return v, err == nil
}

// NormalizeObject makes JSON of the values of an object; nil becomes an empty one. An error calls
// the object by name.
func NormalizeObject(given map[string]any, name string) (map[string]any, error) {
	if given == nil {
		return map[string]any{}, nil
	}
	v, err := store.FromGo(given, name)
	object, _ := v.(map[string]any)
	return object, err
}

// Consult asks a planner. A panic of a planner in Go becomes an error of the planner, as does a
// solution that is not JSON.
func Consult(ctx context.Context, p Planner, ask Ask) (solution *Solution, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = crash.PanicError("the planner broke down", panicked)
		}
	}()
	solution, err = p.Plan(ctx, ask)
	switch {
	case err != nil:
		err, wrong := NormalizeError(err)
		return nil, cmp.Or(wrong, err)
	case solution == nil:
		return nil, errors.New("the planner gave no solution")
	}
	return solution.Normalize()
}

// Normalize makes JSON of the solution of a planner in Go.
func (s *Solution) Normalize() (*Solution, error) {
	out := *s
	out.Calls = slices.Clone(s.Calls)
	for i, src := range s.Calls {
		var err error
		if out.Calls[i].Call, err = store.FromGo(src.Call, fmt.Sprintf("call %d", i+1)); err != nil {
			return nil, err
		}
	}
	var err error
	out.Output, err = store.FromGo(s.Output, "output")
	return &out, err
}

// Normalize returns the request with JSON in place of the values of a Go program ([store.FromGo]),
// in messages, calls, tools, schema and output, and checks its mode and the form of its messages.
// Its error is a [*PlanError].
func (r *Request) Normalize() (*Request, error) {
	out, c := *r, &planCompiler{file: r.Name}
	if r.Mode != "" && r.Mode != ModeEager && r.Mode != ModeLazy {
		c.request(0, fmt.Errorf("mode: it is %q, and must be %s or %s", r.Mode, ModeEager, ModeLazy))
	} else if r.kept != nil {
		return &out, nil
	}
	out.Context, out.Calls, out.Tools = slices.Clone(r.Context), slices.Clone(r.Calls), maps.Clone(r.Tools)
	for i := range out.Context {
		if err := NormalizeMessage(&out.Context[i]); err != nil {
			c.request(0, &MessageError{Number: i + 1, Of: len(r.Context), Err: err})
		}
	}
	for i, src := range r.Calls {
		var err error
		if out.Calls[i].Call, err = store.FromGo(src.Call, ""); err != nil {
			c.call(&Call{Line: src.Line, Written: i + 1, Tool: toolOf(src)}, err)
		}
	}
	if r.Output.Value != nil && !r.Output.Set {
		c.request(r.OutputLine, errors.New("output: it has a value that is not set: store.Some sets it"))
	}
	var err error
	for _, name := range jsonvalue.SortedKeys(r.Tools) {
		if out.Tools[name], err = store.FromGo(r.Tools[name], ""); err != nil {
			c.request(0, fmt.Errorf("tool %q: %w", name, err))
		}
	}
	out.Output.Value, err = store.FromGo(r.Output.Value, "output")
	c.request(r.OutputLine, err)
	out.Schema, err = store.FromGo(r.Schema, "schema")
	c.request(0, err)
	if len(c.problems) > 0 {
		return nil, &PlanError{c.problems}
	}
	return &out, nil
}

// request records a fault outside the calls, if there is one.
func (c *planCompiler) request(line int, err error) {
	if err != nil {
		c.problems = append(c.problems, Problem{File: c.file, Line: line, Severity: SeverityError, Code: CodeSchema, Message: err.Error()})
	}
}

func toolOf(src Source) string {
	given, _ := src.Call.(map[string]any)
	tool, _ := given["_tool"].(string)
	return tool
}

// NormalizeMessage makes JSON of the values of a Go program's message, and checks its form.
func NormalizeMessage(m *store.Message) (err error) {
	name := m.Type.Content()
	if m.Type == store.TypeData && store.ValidKind(m.Kind) {
		name = store.KindPath(m.Kind).String()
	}
	for _, part := range []struct {
		name  string
		value *any
	}{{name, &m.Data.Value}, {"schema", &m.Schema}, {"_call", &m.Producer}} {
		if *part.value, err = store.FromGo(*part.value, part.name); err != nil {
			return err
		}
	}
	return m.Check()
}

// Values is a JSON object whose numbers keep their text.
type Values map[string]any

// JournalDepth bounds the nesting of JSON in the journal: values as deep as data may be, within
// records.
const JournalDepth = store.MaxDepth + 16

// UnmarshalJSON reads an object.
func (v *Values) UnmarshalJSON(text []byte) error {
	read, err := store.DecodeWithin(text, JournalDepth)
	if err != nil {
		return err
	}
	*v, _ = read.(map[string]any)
	return nil
}
