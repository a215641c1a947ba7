package fit

import (
	"math"
	"slices"
	"strconv"

	"obelus/store"
)

// maxMerges bounds how deep references and conjunctions are resolved in one place, maxBranches how
// many branches a union may have once it is distributed.
const (
	maxMerges   = 12
	maxBranches = 64
)

// annotations are keywords that say something to people and bound nothing.
var annotations = []string{"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$anchor", "$defs", "definitions"}

// simplify returns a schema without conjunctions: false, an empty object for any value, a
// reference, a union (anyOf and annotations alone), or bounds on one value. It may take more values
// than the schema, never fewer.
func (f *fitter) simplify(schema any, depth int) any {
	o, ok := schema.(Object)
	if !ok {
		if schema == false {
			return false
		}
		return Object{}
	}
	base := o.Without("$ref", "allOf", "anyOf", "oneOf", "$dynamicRef", "$recursiveRef")
	bounded := slices.ContainsFunc(base, func(m Member) bool { return !slices.Contains(annotations, m.Name) })
	ref, hasRef := o.Get("$ref").(string)
	if hasRef && !bounded && !o.Has("allOf") && !o.Has("anyOf") && !o.Has("oneOf") {
		return Object{{"$ref", ref}}
	}
	var made any = base
	if depth > maxMerges {
		return made
	}
	if hasRef {
		made = f.conjunction(made, Object{{"$ref", ref}}, depth+1)
	}
	for _, part := range o.List("allOf") {
		made = f.conjunction(made, part, depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches, ok := o.Get(keyword).([]any); ok {
			made = f.conjunction(made, Object{{"anyOf", branches}}, depth+1)
		}
	}
	return made
}

// conjunction returns a schema of the values that two schemas both take; it may take more. The
// first has been simplified.
func (f *fitter) conjunction(a, b any, depth int) any {
	if f.merges++; f.merges > maxConjunctions {
		return a
	}
	if o, ok := b.(Object); !ok || !o.Has("anyOf") || o.Has("allOf") || o.Has("oneOf") || len(o) > 1 {
		b = f.simplify(b, depth)
	}
	left, ok := a.(Object)
	right, ok2 := b.(Object)
	if !ok || !ok2 {
		return false
	}
	switch {
	case IsUnbounded(right), depth > maxMerges:
		return left
	case IsUnbounded(left) && !right.Has("anyOf"):
		return Annotate(right, left)
	case left.Has("anyOf"):
		return f.distribute(left, right, depth, false)
	case right.Has("anyOf"):
		return f.distribute(right, left, depth, true)
	case left.Has("$ref"), right.Has("$ref"):
		return f.conjunction(f.resolved(left, depth), f.resolved(right, depth), depth+2)
	}
	return f.merge(left, right, depth)
}

// distribute returns the union of the conjunctions of each branch with a schema.
func (f *fitter) distribute(union, with Object, depth int, branchLast bool) any {
	branches := union.List("anyOf")
	var made []any
	for _, branch := range branches {
		branch = f.simplify(branch, depth)
		if branchLast {
			branch = f.conjunction(with.Without("title", "description"), branch, depth+1)
		} else {
			branch = f.conjunction(branch, with, depth+1)
		}
		if o, ok := branch.(Object); ok && o.Has("anyOf") {
			made = append(made, o.List("anyOf")...)
		} else if branch != false {
			made = append(made, branch)
		}
	}
	if len(made) > maxBranches {
		f.note("", "a union of %d schemas with bounds beside it lost those", len(made))
		return union
	}
	if len(made) == 0 {
		return false
	}
	return Annotate(Annotate(Object{{"anyOf", made}}, union), with)
}

// Annotate returns a schema with the title and the description of another, where it has none.
func Annotate(schema, from Object) Object {
	for _, name := range []string{"title", "description"} {
		if from.Has(name) && !schema.Has(name) && !schema.Has("$ref") {
			schema = schema.With(name, from.Get(name))
		}
	}
	return schema
}

// IsUnbounded reports whether a schema bounds nothing.
func IsUnbounded(schema Object) bool {
	return !slices.ContainsFunc(schema, func(m Member) bool { return !slices.Contains(annotations, m.Name) })
}

// resolved returns the target of a reference, simplified.
func (f *fitter) resolved(schema Object, depth int) any {
	if !schema.Has("$ref") {
		return schema
	}
	target, ok := f.target(schema.Text("$ref"))
	if !ok || depth > maxMerges {
		return Object{}
	}
	return f.simplify(target, depth+1)
}

// merge returns the conjunction of two schemas that have neither references nor unions.
func (f *fitter) merge(a, b Object, depth int) any {
	a, b = withoutClosed(a, b), withoutClosed(b, a)
	if a.Has("prefixItems") {
		b = b.Without("prefixItems", "items")
	} else if b.Has("prefixItems") {
		a = a.Without("items")
	}
	made := a
	for _, m := range b {
		if !a.Has(m.Name) {
			made = append(slices.Clip(made), m)
			continue
		}
		value, ok := f.mergeKeyword(m.Name, a.Get(m.Name), m.Value, depth)
		if !ok {
			return false
		}
		made = made.With(m.Name, value)
	}
	if a.Has("const") && b.Has("enum") || a.Has("enum") && b.Has("const") {
		if !slices.ContainsFunc(made.List("enum"), func(v any) bool { return sameJSON(v, made.Get("const")) }) {
			return false
		}
	}
	for _, name := range Texts(made.Get("required")) {
		if properties := made.Object("properties"); properties.Has(name) && properties.Get(name) == false {
			return false
		}
	}
	return made
}

// withoutClosed returns a schema of an object, where the other is closed, with those properties
// alone that the other declares.
func withoutClosed(schema, other Object) Object {
	if other.Get("additionalProperties") != false || other.Has("patternProperties") || !schema.Has("properties") {
		return schema
	}
	var kept Object
	for _, m := range schema.Object("properties") {
		if !other.Object("properties").Has(m.Name) {
			m.Value = false
		}
		kept = append(kept, m)
	}
	return schema.With("properties", kept)
}

// mergeKeyword returns the value of a keyword that two schemas have; false if no value fits both.
func (f *fitter) mergeKeyword(name string, a, b any, depth int) (any, bool) {
	switch name {
	case "type":
		return mergeTypes(Object{{name, a}}, Object{{name, b}})
	case "const":
		return a, sameJSON(a, b)
	case "enum":
		left, _ := a.([]any)
		right, _ := b.([]any)
		both := slices.DeleteFunc(slices.Clone(left), func(v any) bool {
			return !slices.ContainsFunc(right, func(w any) bool { return sameJSON(v, w) })
		})
		return both, len(both) > 0
	case "required":
		return listOf(unionOf(Texts(a), Texts(b))), true
	case "properties":
		return f.mergeProperties(a, b, depth), true
	case "additionalProperties":
		if a == true {
			return b, true
		}
		return f.conjunction(f.simplify(a, depth), b, depth+1), true
	case "items":
		return f.conjunction(f.simplify(a, depth), b, depth+1), true
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return mergeBounds(a, b, 1), true
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return mergeBounds(a, b, -1), true
	}
	if !slices.Contains(annotations, name) && !sameJSON(a, b) {
		f.note("", "of two %s at one place the second is left out", name)
	}
	return a, true
}

func (f *fitter) mergeProperties(a, b any, depth int) Object {
	made, _ := a.(Object)
	other, _ := b.(Object)
	for _, m := range other {
		if made.Has(m.Name) {
			m.Value = f.conjunction(f.simplify(made.Get(m.Name), depth), m.Value, depth+1)
		}
		made = made.With(m.Name, m.Value)
	}
	return made
}

// mergeTypes returns the types that two schemas have in common.
func mergeTypes(a, b Object) (any, bool) {
	var both []string
	for _, t := range Types(a) {
		for _, u := range Types(b) {
			switch {
			case t == u, t == "integer" && u == "number":
				both = unionOf(both, []string{t})
			case t == "number" && u == "integer":
				both = unionOf(both, []string{u})
			}
		}
	}
	if len(both) == 1 {
		return both[0], true
	}
	return listOf(both), len(both) > 0
}

// unionOf returns the texts that are in one of two lists, each once.
func unionOf(a, b []string) []string {
	made := slices.Clone(a)
	for _, text := range b {
		if !slices.Contains(made, text) {
			made = append(made, text)
		}
	}
	return made
}

// mergeBounds returns the stricter of two bounds: the higher where sign is 1, else the lower.
func mergeBounds(a, b any, sign float64) any {
	if sign*numberOf(b) > sign*numberOf(a) {
		return b
	}
	return a
}

// numberOf returns a JSON number as one of Go; NaN for anything else.
func numberOf(v any) float64 {
	n, err := strconv.ParseFloat(string(store.EncodeJSON(v)), 64)
	if err != nil && !math.IsInf(n, 0) {
		return math.NaN()
	}
	return n
}

// sameJSON reports whether two values are written alike.
func sameJSON(a, b any) bool {
	left, err := JSON(a)
	right, err2 := JSON(b)
	return err == nil && err2 == nil && string(left) == string(right)
}
