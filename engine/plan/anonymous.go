package plan

import (
	"maps"
	"slices"
	"strings"
)

// outerMeta are the meta-properties that are for the parent's call alone.
var outerMeta = []string{"_delegate", "_instance"}

// anonymous returns a request of the call alone, with its resolved parameters. It writes in its own
// context as it would outside; the parent's call gets the result of its activity from the record,
// see engine.capture.
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
	return &Request{Name: Anonymous, Tools: map[string]any{c.Tool: c.Definition.plain()}, Calls: []Source{{Call: call, Accepted: true}}}
}

// plain returns the tool's definition without the meta-properties of the parent's call.
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
