package fit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/engine/schema"
	"obelus/store"
)

// maxUndo bounds the steps in which one value is undone.
const maxUndo = 1_000_000

var errUndo = errors.New("it takes too many steps to find out which alternatives of its schema the answer has")

// undoer converts one value that a model wrote to a value for the original schema.
type undoer struct {
	*fitter
	steps  int
	within []*node // unions that the value at hand is held against: one within itself takes nothing more
}

func (u *undoer) undo(n *node, v any, at string) (any, error) {
	if u.steps--; u.steps < 0 {
		return nil, errUndo
	}
	n = u.follow(n)
	switch {
	case n == nil:
		return v, nil
	case n.text:
		return u.read(n, v, at)
	case slices.Contains(u.within, n):
		return v, nil
	case n.branches != nil:
		defer u.enter(append(u.within, n))()
		return u.choose(n, v, at)
	}
	defer u.enter(nil)()
	switch v := v.(type) {
	case map[string]any:
		return u.undoObject(n, v, at)
	case []any:
		made := slices.Clone(v)
		for i, e := range v {
			child := n.items
			if i < len(n.prefix) {
				child = n.prefix[i]
			}
			var err error
			if made[i], err = u.undo(child, e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return nil, err
			}
		}
		return made, nil
	}
	return v, nil
}

// enter replaces the unions that the value at hand is held against. The function that it returns
// brings them back.
func (u *undoer) enter(within []*node) (leave func()) {
	before := u.within
	u.within = slices.Clip(within)
	return func() { u.within = before }
}

func (u *undoer) undoObject(n *node, v map[string]any, at string) (any, error) {
	made := maps.Clone(v)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		child := n.properties[name]
		if child == nil {
			child = n.additional
		}
		if v[name] == nil && n.optional[name] {
			delete(made, name)
			continue
		}
		var err error
		if made[name], err = u.undo(child, v[name], placeOf(at, name)); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// read reads a JSON text. A value that is no text stays as it is, as does a text that is no JSON
// where the original schema takes a text.
func (u *undoer) read(n *node, v any, at string) (any, error) {
	text, ok := v.(string)
	if !ok {
		return v, nil
	}
	made, err := decodeText(text)
	if err == nil {
		return made, nil
	}
	if u.takesType(n.source, "string", 0) {
		return v, nil
	}
	if at == "" {
		at = "the answer"
	}
	return nil, fmt.Errorf("%s: the text is not JSON: %w", at, err)
}

// decodeText reads a JSON text.
func decodeText(text string) (any, error) { return store.DecodeJSON([]byte(text)) }

// choose undoes a value as one of the branches of a union that it fits: the first whose original
// takes the converted value.
func (u *undoer) choose(n *node, v any, at string) (any, error) {
	fits := slices.DeleteFunc(slices.Clone(n.branches), func(branch *node) bool { return !u.matches(branch, v) })
	if len(fits) == 0 {
		fits = slices.DeleteFunc(slices.Clone(n.branches), func(branch *node) bool { return !u.resembles(branch, v) })
	}
	var first any
	var failed error
	found := false
	for _, branch := range fits {
		made, err := u.undo(branch, v, at)
		switch {
		case err != nil:
			failed = err
			continue
		case len(fits) == 1, u.valid(branch, made):
			return made, nil
		case !found:
			first, found = made, true
		}
	}
	switch {
	case found:
		return first, nil
	case u.steps < 0:
		return nil, errUndo
	case failed != nil:
		return nil, failed
	}
	return v, nil
}

// valid reports whether the original schema of a branch takes a value.
func (u *undoer) valid(n *node, v any) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n.validator == nil {
		compiled, err := schema.New(u.standalone(n.source))
		if err != nil {
			return true // the schema as a whole is refused where the value is held against it
		}
		n.validator = compiled
	}
	return n.validator.Validate(v, "") == nil
}

// standalone returns a part of the original schema as a schema of its own.
func (f *fitter) standalone(part any) any {
	const name = "root"
	move := func(ref string) string {
		if pointer, ok := strings.CutPrefix(ref, "#"); ok {
			return "#/$defs/" + name + pointer
		}
		return ref
	}
	if f.checked == nil {
		f.checked = RewriteRefs(f.root, move)
	}
	return Object{{"allOf", []any{RewriteRefs(part, move)}}, {"$defs", Object{{name, f.checked}}}}
}

// RewriteRefs returns a schema with its references replaced.
func RewriteRefs(schema any, replace func(ref string) string) any {
	o, ok := schema.(Object)
	if !ok {
		return schema
	}
	made := mapSchemas(o, func(inner any) any { return RewriteRefs(inner, replace) })
	for i, m := range made {
		if ref, ok := m.Value.(string); ok && m.Name == "$ref" {
			made[i].Value = replace(ref)
		}
	}
	return made.Without("$id", "$schema")
}

// matches reports whether a value is as a node's schema says, bounds aside.
func (u *undoer) matches(n *node, v any) bool {
	if u.steps--; u.steps < 0 {
		return false
	}
	n = u.follow(n)
	if n == nil {
		return true
	}
	if n.branches != nil {
		if slices.Contains(u.within, n) {
			return false
		}
		defer u.enter(append(u.within, n))()
		return slices.ContainsFunc(n.branches, func(branch *node) bool { return u.matches(branch, v) })
	}
	defer u.enter(nil)()
	if _, isText := v.(string); !u.resembles(n, v) || n.text && !isText {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return u.matchesObject(n, v)
	case []any:
		for i, e := range v {
			child := n.items
			if i < len(n.prefix) {
				child = n.prefix[i]
			}
			if !u.matches(child, e) {
				return false
			}
		}
	case string:
		return !isReferencePattern(n.schema.Text("pattern")) || strings.HasPrefix(strings.TrimPrefix(v, "("), store.Dagger)
	}
	return true
}

func (u *undoer) matchesObject(n *node, v map[string]any) bool {
	for _, name := range Texts(n.schema.Get("required")) {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	closed := n.schema.Get("additionalProperties") == false
	for name, e := range v {
		child, ok := n.properties[name]
		if !ok && closed {
			return false
		}
		if !ok {
			child = n.additional
		}
		if !(e == nil && n.optional[name]) && !u.matches(child, e) {
			return false
		}
	}
	return true
}

// resembles reports whether a value is of a node's types and constants, and so are its direct
// properties where they are constants.
func (u *undoer) resembles(n *node, v any) bool {
	n = u.follow(n)
	if n == nil || n.branches != nil {
		return true
	}
	if types := Types(n.schema); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isOfType(v, t) }) {
		return n.text && v != nil
	}
	if values := Constants(n.schema); len(values) > 0 && !slices.ContainsFunc(values, func(w any) bool { return sameJSON(v, w) }) {
		return false
	}
	object, _ := v.(map[string]any)
	for name, child := range n.properties {
		given, ok := object[name]
		if values := Constants(child.schema); ok && given != nil && len(values) > 0 && !slices.ContainsFunc(values, func(w any) bool { return sameJSON(given, w) }) {
			return false
		}
	}
	return true
}

// isOfType reports whether a value is of a type of JSON Schema.
func isOfType(v any, typ string) bool {
	switch typ {
	case "integer":
		return store.TypeName(v) == "number" && integral().Match(store.EncodeJSON(v))
	case "number":
		return store.TypeName(v) == "number" || store.TypeName(v) == "integer"
	}
	return store.TypeName(v) == typ
}

// integral matches the text of a number that is an integer, as most are written.
var integral = lazyregexp.New(`^-?[0-9]+(\.0+)?([eE]\+?[0-9]+)?$`)

// isReferencePattern reports whether a pattern is one of texts that begin with †, or with a
// parenthesis before it.
func isReferencePattern(pattern string) bool {
	return strings.HasPrefix(pattern, "^"+store.Dagger) || strings.HasPrefix(pattern, `^\(?`+store.Dagger)
}

// SafeName returns a name for a definition, of characters that a reference holds as they are.
func SafeName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r) {
			return r
		}
		return '_'
	}, name)
}
