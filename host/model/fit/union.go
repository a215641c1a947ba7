package fit

import (
	"maps"
	"slices"
)

// union fits a union. Where a value could be of two branches, and JSON texts in one of them would
// make it another value, all of the union is written as JSON text.
func (f *fitter) union(branches []any, s Object, source any, at string) *node {
	n := &node{source: source}
	for _, branch := range branches {
		child := f.build(branch, at)
		switch {
		case child.never:
		case child.branches != nil && !child.schema.Has("description"):
			n.branches = append(n.branches, child.branches...)
		default:
			n.branches = append(n.branches, child)
		}
	}
	switch len(n.branches) {
	case 0:
		return &node{schema: Object{{"type", "null"}}, source: source, never: true}
	case 1:
		if only := *n.branches[0]; only.ref == "" {
			only.schema = described(only.schema, s.Without("description"), "")
			if text := s.Text("description"); text != "" && !only.schema.Has("description") {
				only.schema = only.schema.With("description", text)
			}
			return &only
		}
	}
	for i, a := range n.branches {
		for _, b := range n.branches[:i] {
			if !f.separable(b, a) {
				f.note(at, "its alternatives can't be told apart as JSON texts, and all are one JSON text")
				return f.asText(s, source)
			}
		}
	}
	fitted := make([]any, len(n.branches))
	for i, branch := range n.branches {
		fitted[i] = branch.schema
	}
	n.schema = f.described(Object{{"anyOf", fitted}}, s, f.dropped(s, at, slices.Concat([]string{"anyOf", "type"}, boundsOfOneType)...))
	return n
}

// boundsOfOneType are keywords that the branches of a union of types repeat.
var boundsOfOneType = slices.Concat(numberBounds, textBounds, itemBounds, []string{"properties", "required", "additionalProperties", "patternProperties", "items",
	"prefixItems", "pattern", "format", "multipleOf", "uniqueItems", "minProperties", "maxProperties", "contains", "not", "if", "then", "else"})

// separable reports whether a value of one of two branches is never undone as one of the other, if
// that makes a difference.
func (f *fitter) separable(a, b *node) bool {
	a, b = f.follow(a), f.follow(b)
	if a == nil || b == nil || !f.hasText(a, nil) && !f.hasText(b, nil) || a.text && b.text {
		return true
	}
	types := f.fittedTypes(a, nil)
	if !slices.ContainsFunc(f.fittedTypes(b, nil), func(t string) bool { return slices.Contains(types, t) }) {
		return true
	}
	if a.text || b.text {
		other := a
		if a.text {
			other = b
		}
		return neverJSON(other.schema)
	}
	for name, child := range a.properties {
		if other := b.properties[name]; other != nil && disjoint(child.schema, other.schema) && isRequired(a, name) && isRequired(b, name) {
			return true
		}
	}
	return false
}

func isRequired(n *node, name string) bool {
	return !n.optional[name] && slices.Contains(Texts(n.schema.Get("required")), name)
}

// neverJSON reports whether the texts that a schema takes are no JSON.
func neverJSON(schema Object) bool {
	if pattern := schema.Text("pattern"); isReferencePattern(pattern) {
		return true
	}
	values := Constants(schema)
	return len(values) > 0 && !slices.ContainsFunc(values, func(v any) bool {
		text, ok := v.(string)
		_, err := decodeText(text)
		return ok && err == nil
	})
}

// Constants returns the values of a const or an enum.
func Constants(schema Object) []any {
	if schema.Has("const") {
		return []any{schema.Get("const")}
	}
	return schema.List("enum")
}

// disjoint reports whether two schemas are of different constants.
func disjoint(a, b Object) bool {
	left, right := Constants(a), Constants(b)
	return len(left) > 0 && len(right) > 0 && !slices.ContainsFunc(left, func(v any) bool {
		return slices.ContainsFunc(right, func(w any) bool { return sameJSON(v, w) })
	})
}

// hasText reports whether a value of the node has JSON texts within.
func (f *fitter) hasText(n *node, seen []*node) bool {
	n = f.follow(n)
	if n == nil || slices.Contains(seen, n) {
		return false
	}
	if n.text || n.schema == nil && !f.dialect.Untyped {
		return true // of a definition that is still being built, that is not known
	}
	seen = append(seen, n)
	for _, child := range n.children() {
		if f.hasText(child, seen) {
			return true
		}
	}
	return false
}

// children returns the nodes directly within a node.
func (n *node) children() []*node {
	all := slices.Concat(n.branches, n.prefix)
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		all = append(all, n.properties[name])
	}
	for _, child := range []*node{n.additional, n.items} {
		if child != nil {
			all = append(all, child)
		}
	}
	return all
}

// fittedTypes returns the types of the values of a node.
func (f *fitter) fittedTypes(n *node, seen []*node) (types []string) {
	n = f.follow(n)
	switch {
	case n == nil || slices.Contains(seen, n):
		return nil
	case n.schema == nil:
		for _, t := range slices.Concat(scalars, []string{"object", "array"}) {
			if f.takesType(n.source, t, 0) {
				types = append(types, t)
			}
		}
	case n.branches != nil:
		for _, branch := range n.branches {
			types = unionOf(types, f.fittedTypes(branch, append(seen, n)))
		}
	case len(Types(n.schema)) > 0:
		types = Types(n.schema)
	case len(Constants(n.schema)) > 0:
		types = typesOfValues(Constants(n.schema))
	default:
		types = slices.Concat(scalars, []string{"object", "array"})
	}
	if slices.Contains(types, "integer") {
		types = unionOf(types, []string{"number"})
	}
	return types
}
