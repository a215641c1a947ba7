package plan

import (
	"fmt"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/store"
)

// parseAfter reads a call's _after: a reference, or a list of references.
func parseAfter(issued map[string]any) ([]store.Path, error) {
	v, given := issued["_after"]
	if !given {
		return nil, nil
	}
	list, isList := v.([]any)
	if object, ok := v.(map[string]any); ok && len(object) == 0 {
		return nil, nil // an empty Lua table
	}
	if !isList {
		path, err := parseReference(v)
		if err != nil {
			return nil, Faultf(CodeExpression, "_after: %w", err)
		}
		return []store.Path{path}, nil
	}
	var paths []store.Path
	for i, e := range list {
		path, err := parseReference(e)
		if err != nil {
			return nil, Faultf(CodeExpression, "_after[%d]: %w", i, err)
		}
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// parseReference reads a text that is a reference and nothing else.
func parseReference(v any) (path store.Path, err error) {
	text, _ := v.(string)
	if err := refuseEscaped(text); err != nil {
		return path, err
	}
	if path, err = store.ParsePath(text); err == nil {
		return path, nil
	}
	hint := store.QuoteHint(err)
	if _, err := store.ParsePath(store.Dagger + text); err == nil {
		hint = fmt.Sprintf(" (did you mean %q?)", store.Dagger+text)
	} else if several, err := expr.ParseOutput(text); err == nil && strings.Contains(text, store.Dagger) {
		names := make([]any, len(several.Writes()))
		for i, path := range several.Writes() {
			names[i] = path.String()
		}
		hint = fmt.Sprintf(" (several stand in a list: %s)", store.EncodeJSON(names))
	}
	return path, fmt.Errorf(`expected a reference such as "†state.a", or a list of them, found %s%s`, store.EncodeJSON(v), hint)
}
