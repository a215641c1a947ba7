package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// outerMeta are the meta-properties that are for the parent's call alone.
var outerMeta = []string{"_delegate", "_instance"}

// anonymous is a request of the call alone, with what it was resolved to. It
// writes in its room as it would outside; what its activity gave back goes to
// the parent's call by its record, see [capture].
func (c *Call) anonymous(in Invocation) *Request {
	call := map[string]any{}
	for name, v := range in.Call {
		switch {
		case slices.Contains(outerMeta, name):
		case strings.HasPrefix(name, "_"):
			call[name] = v
		default:
			call[name] = Literal(v)
		}
	}
	return &Request{Name: Anonymous, Tools: map[string]any{c.Tool: c.tool.plain()}, Calls: []Source{{Call: call, accepted: true}}}
}

// plain is the tool's definition without what is for the parent's call alone.
func (t *Tool) plain() any {
	object, ok := t.Schema.(map[string]any)
	if !ok {
		return t.Schema
	}
	out := maps.Clone(object)
	properties, _ := object["properties"].(map[string]any)
	if properties = maps.Clone(properties); properties != nil {
		out["properties"] = properties
	}
	for _, name := range outerMeta {
		delete(out, name)
		delete(properties, name)
	}
	if required, ok := requiredOf(object); ok {
		kept := []any{}
		for _, name := range required {
			if !slices.Contains(outerMeta, name) {
				kept = append(kept, name)
			}
		}
		out["required"] = kept
	}
	return out
}

// capture is what an activity gave back, as the record of an anonymous
// delegate's call keeps it; nil where the activity broke down.
func capture(res *result) Values {
	captured, loose := Values{}, res.value.Loose
	var failure *Failure
	switch {
	case errors.As(res.err, &failure):
		captured["failure"], loose = failure.Fields, failure.Loose
	case res.err != nil:
		return nil
	case res.value.Message != nil:
		captured["message"] = res.value.Message
	default:
		captured["value"] = res.value.Value
		if res.value.To != "" {
			captured["to"] = res.value.To
		}
	}
	if loose {
		captured["loose"] = true
	}
	return captured
}

// uncapture is the way back from [capture].
func uncapture(object Values) result {
	loose, _ := object["loose"].(bool)
	if fields, ok := object["failure"].(map[string]any); ok {
		return result{err: &Failure{Fields: fields, Loose: loose}}
	}
	value := Result{Value: object["value"], Loose: loose}
	value.To, _ = object["to"].(string)
	value.Message, _ = object["message"].(map[string]any)
	return result{value: value}
}

// insideError is an anonymous delegate that failed though its call has
// alternatives: a fault, not an outcome.
type insideError struct{ fields map[string]any }

func (e *insideError) Error() string { return (&Failure{Fields: e.fields}).Error() }
