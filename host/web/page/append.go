package page

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"obelus/store"
)

// mostWaits bounds the paths that have an input in the form for a run that waits.
const mostWaits = 20

// waitFields returns the inputs for the values that a run waits for, as the schemas describe them
// that the context declares for their kinds. Paths without a schema have none.
func (l reader) waitFields(ctx context.Context, name string, waits []string) ([]field, error) {
	view, err := store.OpenView(ctx, l.Log, name)
	if err != nil {
		return nil, err
	}
	var paths []store.Path
	for _, text := range waits[:min(len(waits), mostWaits)] {
		path, err := store.ParsePath(text)
		if err != nil {
			return nil, &fieldError{"wait", err.Error()}
		}
		paths = append(paths, path)
	}
	slices.SortStableFunc(paths, func(a, b store.Path) int { return len(a.Segments()) - len(b.Segments()) })
	root, shown := map[string]any{}, []store.Path{}
	for _, path := range paths {
		if slices.ContainsFunc(shown, path.Overlaps) { // the inputs of a path above it have it
			continue
		}
		declared, _, err := view.Schema(ctx, path.Kind(), "")
		if err != nil {
			return nil, err
		}
		below, required := schemaAt(declared, path.Segments())
		if below == nil || slices.ContainsFunc(path.Segments(), func(s string) bool { return !hasInput(s) }) {
			continue
		}
		shown = append(shown, path)
		at, names := root, append([]string{path.Kind()}, path.Segments()...)
		for _, segment := range names[:len(names)-1] {
			at = member(propertiesOf(at), segment)
			at["type"] = "object"
		}
		last := names[len(names)-1]
		propertiesOf(at)[last] = below
		if required {
			list, _ := at["required"].([]any)
			at["required"] = append(list, last)
		}
	}
	return fieldsOf(root, nil), nil
}

// propertiesOf returns the properties of an object's schema, and gives it some if it has none.
func propertiesOf(object map[string]any) map[string]any { return member(object, "properties") }

// member returns the object below a key of another one, which it makes if there is none.
func member(object map[string]any, key string) map[string]any {
	of, _ := object[key].(map[string]any)
	if of == nil {
		of = map[string]any{}
		object[key] = of
	}
	return of
}

// schemaAt returns the part of a schema that describes a place in a value, if its properties name
// it, and whether the place is required.
func schemaAt(schema any, segments []string) (of map[string]any, required bool) {
	of, _ = schema.(map[string]any)
	for _, segment := range segments {
		list, _ := of["required"].([]any)
		required = slices.Contains(list, any(segment))
		properties, _ := of["properties"].(map[string]any)
		of, _ = properties[segment].(map[string]any)
	}
	return of, required
}

// sampleMessage returns a message of the first value that a run waits for, or of an input. A list
// is given as a whole.
func (l reader) sampleMessage(ctx context.Context, name string, waits []string) (map[string]any, error) {
	path := store.MustParsePath("†input.name")
	if len(waits) > 0 {
		if first, err := store.ParsePath(waits[0]); err == nil {
			path = first
		}
	}
	data := store.Wrap(path, "…")
	list, err := store.Resolver{Log: l.Log, Context: name}.ListReplaced(ctx, store.KindPath(path.Kind()), "", data)
	if !list.IsZero() {
		data = store.Wrap(list, []any{"…"})
	}
	return map[string]any{"type": "data", "kind": path.Kind(), "data": data}, err
}

// appendAct returns the request that appends what a form gives: the values that a run waits for, or
// a value at a path.
func (p *Page) appendAct(r *http.Request, name string) (act, error) {
	form := r.PostForm
	if len(form["wait"]) == 0 {
		return p.read.appendPathAct(r.Context(), name, form)
	}
	fields, err := p.read.waitFields(r.Context(), name, form["wait"])
	if err != nil {
		return act{}, err
	}
	text, err := valueFrom(fields, form)
	if err != nil {
		return act{}, err
	}
	values, err := store.DecodeJSON(text)
	if err != nil {
		return act{}, err
	}
	kinds, _ := values.(map[string]any)
	var messages []any
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		messages = append(messages, map[string]any{"type": "data", "kind": kind, "data": kinds[kind]})
	}
	if len(messages) == 0 {
		return act{}, &fieldError{"values", "give at least one"}
	}
	return act{http.MethodPost, contextPath(name, "messages"), messages}, nil
}

// appendPathAct returns the request that appends a value at a path.
func (l reader) appendPathAct(ctx context.Context, name string, form url.Values) (act, error) {
	path, err := store.ParseTyped(strings.TrimSpace(form.Get("path")))
	if err != nil {
		return act{}, &fieldError{"path", err.Error()}
	}
	text := strings.ReplaceAll(form.Get("value"), "\r\n", "\n")
	value, err := store.DecodeJSON([]byte(text))
	if err != nil && strings.ContainsAny(strings.TrimSpace(text)[:min(1, len(strings.TrimSpace(text)))], `{["`) {
		return act{}, &fieldError{"value", "it looks like JSON, and is none: " + err.Error()}
	}
	if err != nil { // not JSON: a text
		value = text
	}
	data, instance := store.Wrap(path, value), strings.TrimSpace(form.Get("instance"))
	list, err := store.Resolver{Log: l.Log, Context: name}.ListReplaced(ctx, store.KindPath(path.Kind()), instance, data)
	if err != nil {
		return act{}, err
	}
	if !list.IsZero() {
		return act{}, &fieldError{"path", list.String() + " is a list, which this would replace by an object: append the whole list there"}
	}
	message := map[string]any{"type": "data", "kind": path.Kind(), "data": data}
	if instance != "" {
		message["_instance"] = instance
	}
	return act{http.MethodPost, contextPath(name, "messages"), message}, nil
}
