package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"obelus/store"
)

// MessageError is a message that is refused. Nothing has been appended.
type MessageError struct {
	Number int // among those that were given, from 1
	Of     int
	Input  bool // it is the run's input
	Err    error
}

func (e *MessageError) Error() string {
	if e.Input {
		return "input: " + e.Err.Error()
	}
	if e.Of == 1 {
		return "message: " + e.Err.Error()
	}
	return fmt.Sprintf("message %d: %s", e.Number, e.Err)
}

// Class implements the interface of [store.ClassOf].
func (e *MessageError) Class() store.Class { return store.Refused }

func (e *MessageError) Unwrap() error { return e.Err }

// JoinMethod is the method by which the call's writes join the values there.
func (c *Call) JoinMethod() store.Method {
	if c.Method == "" {
		return store.Set
	}
	return c.Method
}

// CorrectionPlace is the place that a correction's key names: an existing argument, dots included,
// or a value inside one.
func CorrectionPlace(key string, arguments map[string]any) []string {
	if _, ok := arguments[key]; ok {
		return []string{key}
	}
	return strings.Split(key, ".")
}

// Modes of a plan.
const (
	ModeEager = "eager"
	ModeLazy  = "lazy"
)

// Place decides which alternative a result goes to (the table of protocol §5).
func (c *Call) Place(res *Result, wrong error) (paths []store.Path, value any, err error) {
	alternatives := c.Output.Alternatives
	failure, failed := errors.AsType[*Failure](wrong)
	switch {
	case failed && len(alternatives) > 1:
		res.Loose = failure.Loose
		return alternatives[len(alternatives)-1], failure.Fields, nil
	case wrong != nil:
		return nil, nil, wrong
	case res.Message != nil:
		return c.placeMessage(res.Message, res.Loose)
	}
	paths = alternatives[0]
	if i := slices.Index(c.Alternatives(), res.To); i >= 0 {
		paths = alternatives[i]
	} else if res.To != "" {
		path, err := store.ParsePath(res.To)
		if err != nil {
			return nil, nil, &Fault{"output", err}
		}
		var ok bool
		if paths, ok = c.Output.AlternativeWith(path); !ok {
			return nil, nil, Faultf("output", "the result was sent to %s, which its _outputPath %s does not declare", path, c.Output.Source)
		}
	}
	value, err = c.CheckResult(res.Value, res.Loose)
	return paths, value, err
}

// CheckResult checks a result against the tool's schema for it.
func (c *Call) CheckResult(value any, loose bool) (any, error) {
	if c.Definition.output == nil {
		return value, nil
	}
	if loose {
		value = c.Definition.output.Lists(value)
	}
	if err := c.Definition.output.Validate(value, "result"); err != nil {
		return nil, &Fault{CodeSchema, fmt.Errorf("the result breaks the tool's _output schema: %w", err)}
	}
	return value, nil
}

// placeMessage finds the first alternative whose paths are exactly those of a message. Each path of
// the alternative gets the value that the message has there.
func (c *Call) placeMessage(message map[string]any, loose bool) ([]store.Path, any, error) {
	kind, _ := message["kind"].(string)
	data := message["data"]
	for _, paths := range c.Output.Alternatives {
		if values, ok := valuesWithin(paths, kind, data); ok {
			for _, path := range paths {
				var err error
				if values[path], err = c.CheckResult(values[path], loose); err != nil {
					return nil, nil, err
				}
			}
			return paths, values, nil
		}
	}
	return nil, nil, Faultf("output", "the message that it gave back, %s, is what no alternative of its _outputPath %s writes", store.EncodeJSON(message), c.Output.Source)
}

// ValuesByPath is a value for each path that is written.
type ValuesByPath map[store.Path]any

// valuesWithin reports whether data holds a value at each of the paths and nothing beside them.
func valuesWithin(paths []store.Path, kind string, data any) (ValuesByPath, bool) {
	values := ValuesByPath{}
	for _, path := range paths {
		v, ok := store.Dig(data, path)
		if !ok || kind != "" && path.Kind() != kind {
			return nil, false
		}
		values[path] = v
	}
	var covered func(v any, at store.Path) bool
	covered = func(v any, at store.Path) bool {
		if slices.ContainsFunc(paths, func(p store.Path) bool { return p == at }) {
			return true
		}
		within := map[string]any{}
		switch v := v.(type) {
		case map[string]any:
			within = v
		case []any:
			for i, e := range v {
				within[strconv.Itoa(i)] = e
			}
		}
		for key, e := range within {
			if !covered(e, at.Child(key)) {
				return false
			}
		}
		return len(within) > 0
	}
	return values, covered(data, store.KindPath(paths[0].Kind()))
}
