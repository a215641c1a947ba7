package fit

import (
	"slices"
	"strings"
)

// object fits a schema of objects.
func (f *fitter) object(s Object, source any, at string) *node {
	if f.isMap(s) && !f.dialect.Untyped {
		return f.asText(s, source)
	}
	n := &node{source: source, properties: map[string]*node{}, optional: map[string]bool{}}
	fitted, must := f.properties(n, s, at)
	made := Object{{"type", "object"}}
	if s.Has("properties") || f.dialect.Closed {
		made = append(made, Member{"properties", fitted})
	}
	if len(must) > 0 || f.dialect.AllRequired {
		made = append(made, Member{"required", listOf(must)})
	}
	additional := s.Get("additionalProperties")
	switch inner, ok := additional.(Object); {
	case f.dialect.Closed:
		made = append(made, Member{"additionalProperties", false})
	case ok && !s.Has("patternProperties"):
		n.additional = f.build(inner, placeOf(at, "*"))
		made = append(made, Member{"additionalProperties", n.additional.schema})
	case additional != nil && !s.Has("patternProperties"):
		made = append(made, Member{"additionalProperties", additional})
	}
	n.schema = f.described(made, s, f.dropped(s, at, "type", "properties", "required", "additionalProperties"))
	return n
}

// properties fits the properties of an object, and returns them with the names of those that are
// required.
func (f *fitter) properties(n *node, s Object, at string) (fitted Object, must []string) {
	properties, required := s.Object("properties"), Texts(s.Get("required"))
	fitted = Object{}
	for _, name := range required {
		switch {
		case properties.Has(name):
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
			schema = f.nullable(schema)
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
	if len(s.Object("properties")) == 0 {
		return additional != false || len(s.Object("patternProperties")) > 0
	}
	inner, ok := additional.(Object)
	return ok && !IsUnbounded(inner) || len(s.Object("patternProperties")) > 0
}

// nullable returns a fitted schema that takes null too. One that begins with a reference refers to
// a definition that does, which takes less where there are many.
func (f *fitter) nullable(schema Object) Object {
	null := Object{{"type", "null"}}
	if name, ok := definitionOf(schema); ok {
		return Object{{"$ref", "#/$defs/" + f.orNull(name)}}
	}
	branches := schema.List("anyOf")
	if branches == nil {
		return Object{{"anyOf", []any{schema, null}}}
	}
	if name, ok := definitionOf(branches[0]); ok {
		branches = slices.Clone(branches)
		branches[0] = Object{{"$ref", "#/$defs/" + f.orNull(name)}}
	} else {
		branches = append(slices.Clone(branches), null)
	}
	return schema.With("anyOf", branches)
}

// definitionOf returns the name of the definition that a fitted schema is a reference to, and no
// more.
func definitionOf(schema any) (name string, ok bool) {
	o, _ := schema.(Object)
	if len(o) != 1 {
		return "", false
	}
	return strings.CutPrefix(o.Text("$ref"), "#/$defs/")
}

// orNull returns the name of a definition of what another takes, or null.
func (f *fitter) orNull(name string) string {
	if f.nullables[name] == "" {
		f.nullables[name] = f.freeName(name + "OrNull")
	}
	return f.nullables[name]
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
	if types := Types(o); len(types) > 0 && !slices.Contains(types, typ) {
		return false
	}
	ofType := func(v any) bool { return isOfType(v, typ) }
	if o.Has("const") && !ofType(o.Get("const")) || o.Has("enum") && !slices.ContainsFunc(o.List("enum"), ofType) {
		return false
	}
	takes := func(part any) bool { return f.takesType(part, typ, depth+1) }
	if branches := o.List("anyOf"); branches != nil && !slices.ContainsFunc(branches, takes) {
		return false
	}
	if branches := o.List("oneOf"); branches != nil {
		n := len(slices.DeleteFunc(slices.Clone(branches), func(branch any) bool { return !takes(branch) }))
		if n == 0 || n > 1 && typ == "null" { // there is only one null, and it must be of one branch
			return false
		}
	}
	return !slices.ContainsFunc(o.List("allOf"), func(part any) bool { return !takes(part) })
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
