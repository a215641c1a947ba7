package model

import (
	"slices"
)

// object fits a schema of objects.
func (f *fitter) object(s Object, source any, at string) *node {
	if f.isMap(s) && !f.dialect.Untyped {
		return f.asText(s, source)
	}
	n := &node{source: source, properties: map[string]*node{}, optional: map[string]bool{}}
	fitted, must := f.properties(n, s, at)
	made := Object{{"type", "object"}}
	if s.has("properties") || f.dialect.Closed {
		made = append(made, Member{"properties", fitted})
	}
	if len(must) > 0 || f.dialect.AllRequired {
		made = append(made, Member{"required", listOf(must)})
	}
	additional := s.Get("additionalProperties")
	switch inner, ok := additional.(Object); {
	case f.dialect.Closed:
		made = append(made, Member{"additionalProperties", false})
	case ok && !s.has("patternProperties"):
		n.additional = f.build(inner, placeOf(at, "*"))
		made = append(made, Member{"additionalProperties", n.additional.schema})
	case additional != nil && !s.has("patternProperties"):
		made = append(made, Member{"additionalProperties", additional})
	}
	n.schema = f.described(made, s, f.dropped(s, at, "type", "properties", "required", "additionalProperties"))
	return n
}

// properties fits the properties of an object, and returns them with the names of those that are
// required.
func (f *fitter) properties(n *node, s Object, at string) (fitted Object, must []string) {
	properties, required := s.object("properties"), textsOf(s.Get("required"))
	fitted = Object{}
	for _, name := range required {
		switch {
		case properties.has(name):
		case f.dialect.Closed:
			properties = append(slices.Clip(properties), Member{name, true})
		default:
			must = append(must, name)
		}
	}
	for _, m := range properties {
		child, needed := f.build(m.Value, placeOf(at, m.Name)), slices.Contains(required, m.Name)
		if child.never && !needed {
			continue
		}
		null := f.writesNull(child, 0)
		n.properties[m.Name], n.optional[m.Name] = child, !needed && !(null && f.takesType(m.Value, "null", 0))
		schema := child.schema
		if f.dialect.AllRequired && n.optional[m.Name] && !null {
			schema = nullable(schema)
		}
		fitted = append(fitted, Member{m.Name, schema})
		if needed || f.dialect.AllRequired {
			must = append(must, m.Name)
		}
	}
	return fitted, must
}

// isMap reports whether an object's properties are not known: none is declared, or others are
// declared by their pattern or their value.
func (f *fitter) isMap(s Object) bool {
	additional := s.Get("additionalProperties")
	if len(s.object("properties")) == 0 {
		return additional != false || len(s.object("patternProperties")) > 0
	}
	inner, ok := additional.(Object)
	return ok && !isFree(inner) || len(s.object("patternProperties")) > 0
}

// nullable returns a fitted schema that takes null too.
func nullable(schema Object) Object {
	null := Object{{"type", "null"}}
	if branches := schema.list("anyOf"); branches != nil {
		return schema.with("anyOf", append(slices.Clone(branches), null))
	}
	return Object{{"anyOf", []any{schema, null}}}
}

// takesType reports whether a schema takes a value of a type, by its types alone.
func (f *fitter) takesType(source any, typ string, depth int) bool {
	o, ok := source.(Object)
	if !ok || depth > maxMerges {
		return source != false
	}
	if ref, ok := o.Get("$ref").(string); ok {
		if target, ok := f.target(ref); ok && !f.takesType(target, typ, depth+1) {
			return false
		}
	}
	if types := typesOf(o); len(types) > 0 && !slices.Contains(types, typ) {
		return false
	}
	ofType := func(v any) bool { return isOfType(v, typ) }
	if o.has("const") && !ofType(o.Get("const")) || o.has("enum") && !slices.ContainsFunc(o.list("enum"), ofType) {
		return false
	}
	takes := func(part any) bool { return f.takesType(part, typ, depth+1) }
	if branches := o.list("anyOf"); branches != nil && !slices.ContainsFunc(branches, takes) {
		return false
	}
	if branches := o.list("oneOf"); branches != nil {
		n := len(slices.DeleteFunc(slices.Clone(branches), func(branch any) bool { return !takes(branch) }))
		if n == 0 || n > 1 && typ == "null" { // there is only one null, and it must be of one branch
			return false
		}
	}
	return !slices.ContainsFunc(o.list("allOf"), func(part any) bool { return !takes(part) })
}

// writesNull reports whether null is written for a value of a node.
func (f *fitter) writesNull(n *node, depth int) bool {
	switch {
	case n.text, depth > maxMerges:
		return false
	case n.branches != nil:
		return slices.ContainsFunc(n.branches, func(branch *node) bool { return f.writesNull(branch, depth+1) })
	case n.ref == "":
		return f.takesType(n.schema, "null", 0)
	}
	if def := f.defs[n.ref]; def.schema != nil {
		return f.writesNull(def, depth+1)
	}
	return f.takesType(Object{{"$ref", n.ref}}, "null", 0) // the definition holds the property
}

// union fits a union. Where a value could be of two branches, and JSON texts in one of them would
// make it another value, all of the union is written as JSON text.
func (f *fitter) union(branches []any, s Object, source any, at string) *node {
	n := &node{source: source}
	for _, branch := range branches {
		child := f.build(branch, at)
		switch {
		case child.never:
		case child.branches != nil && !child.schema.has("description"):
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
			only.schema = described(only.schema, s.without("description"), "")
			if text := s.text("description"); text != "" && !only.schema.has("description") {
				only.schema = only.schema.with("description", text)
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
	return !n.optional[name] && slices.Contains(textsOf(n.schema.Get("required")), name)
}

// neverJSON reports whether the texts that a schema takes are no JSON.
func neverJSON(schema Object) bool {
	if pattern := schema.text("pattern"); isReferencePattern(pattern) {
		return true
	}
	values := valuesOf(schema)
	return len(values) > 0 && !slices.ContainsFunc(values, func(v any) bool {
		text, ok := v.(string)
		_, err := decodeText(text)
		return ok && err == nil
	})
}

// valuesOf returns the values of a const or an enum.
func valuesOf(schema Object) []any {
	if schema.has("const") {
		return []any{schema.Get("const")}
	}
	return schema.list("enum")
}

// disjoint reports whether two schemas are of different constants.
func disjoint(a, b Object) bool {
	left, right := valuesOf(a), valuesOf(b)
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

// children are the nodes directly within a node.
func (n *node) children() []*node {
	all := slices.Concat(n.branches, n.prefix)
	for _, name := range sortedKeys(n.properties) {
		all = append(all, n.properties[name])
	}
	for _, child := range []*node{n.additional, n.items} {
		if child != nil {
			all = append(all, child)
		}
	}
	return all
}

// fittedTypes are the types of the values of a node.
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
	case len(typesOf(n.schema)) > 0:
		types = typesOf(n.schema)
	case len(valuesOf(n.schema)) > 0:
		types = typesOfValues(valuesOf(n.schema))
	default:
		types = slices.Concat(scalars, []string{"object", "array"})
	}
	if slices.Contains(types, "integer") {
		types = unionOf(types, []string{"number"})
	}
	return types
}
