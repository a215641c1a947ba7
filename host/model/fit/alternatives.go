package fit

import (
	"slices"
	"strings"

	"obelus/store"
)

// typed are the types with the keywords that are about their values alone.
var typed = []struct {
	name     string
	keywords []string
}{
	{"object", []string{"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}},
	{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
	{"string", []string{"pattern", "format", "minLength", "maxLength"}},
	{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
}

// ImpliedTypes returns the type that a schema without one is about, by its keywords.
func ImpliedTypes(s Object) []string {
	for _, t := range typed {
		if slices.ContainsFunc(t.keywords, s.Has) {
			return []string{t.name}
		}
	}
	return nil
}

// typesOf returns the types that a schema names or implies.
func typesOf(s Object) []string {
	if types := Types(s); len(types) > 0 {
		return types
	}
	return ImpliedTypes(s)
}

// scalars are the types of values that hold no others.
var scalars = []string{"string", "number", "integer", "boolean", "null"}

// areScalar reports whether all of some types are of values that hold no others.
func areScalar(types []string) bool {
	return !slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(scalars, t) })
}

// unwrapped returns a schema without unions and conjunctions of one schema around it.
func unwrapped(source any) Object {
	s, _ := source.(Object)
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if parts := partsOf(s, keyword); len(parts) == 1 {
			return unwrapped(parts[0])
		}
	}
	return s
}

// partsOf returns the schemas of which a schema is a union or a conjunction alone; nil if it is
// none.
func partsOf(s Object, keyword string) []any {
	if !s.Has(keyword) || !IsUnbounded(s.Without(keyword, "type")) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.List(keyword)), func(part any) bool { return part == false && keyword != "allOf" })
}

// branchesOf returns the schemas of which a schema is a union: those of its anyOf or oneOf, or one
// for each of its types; nil if it is none.
func branchesOf(s Object) (branches []any) {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if parts := partsOf(s, keyword); len(parts) > 1 {
			return parts
		}
	}
	types := Types(s)
	if isSingle := len(types) < 2 || len(Constants(s)) > 0; isSingle || areScalar(types) {
		return nil
	}
	for _, name := range types {
		branch := s.Without("title", "description").With("type", name)
		for _, t := range typed {
			if isNumber := t.name == "number" && name == "integer"; t.name != name && !isNumber {
				branch = branch.Without(t.keywords...)
			}
		}
		branches = append(branches, branch)
	}
	return branches
}

// target returns the schema that a reference leads to; ok is false if it leads nowhere, or if a
// closed object would lack the properties that are declared beside the reference.
func (w *walker) target(s Object) (target any, ok bool) {
	steps, ok := PointerSteps(s.Text("$ref"))
	if beside := s.Without("$ref"); !ok || w.dialect.Closed && (beside.Has("properties") || declaresElsewhere(beside)) {
		return nil, false
	}
	return Resolve(w.root, steps)
}

// isText reports whether the values of a schema are written as the text of their JSON, for the
// dialect has no schema for them. The schema is unwrapped.
func (w *walker) isText(s Object) bool {
	if w.dialect.Untyped {
		return false
	}
	isText, ok := w.texts[keyOf(s)]
	if !ok {
		isText = w.hasNoSchema(s)
		w.texts[keyOf(s)] = isText
	}
	return isText
}

// hasNoSchema is isText for a schema that has not been looked at.
func (w *walker) hasNoSchema(s Object) bool {
	types, values := typesOf(s), Constants(s)
	switch {
	case s.Has("$ref"):
		_, ok := w.target(s)
		return !ok
	case branchesOf(s) != nil:
		leaves := w.alternatives(s)
		return len(leaves) == 1 && keyOf(leaves[0]) == keyOf(s)
	case len(values) > 0:
		return slices.ContainsFunc(values, holdsOthers)
	case len(types) == 0:
		return true
	case types[0] == "object":
		return isMap(s) || declaresElsewhere(s)
	}
	return s.Has("prefixItems") && types[0] == "array"
}

// isMap reports whether an object's properties are not known: none is declared, or others are
// declared by their pattern or their value.
func isMap(s Object) bool {
	additional := s.Get("additionalProperties")
	if len(s.Object("properties")) == 0 && additional != false || len(s.Object("patternProperties")) > 0 {
		return true
	}
	inner, ok := additional.(Object)
	return ok && !IsUnbounded(inner)
}

// declaresElsewhere reports whether a schema of an object may have properties that are declared by
// a schema beside its own.
func declaresElsewhere(s Object) bool {
	return slices.ContainsFunc([]string{"allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas"}, func(keyword string) bool {
		text, err := JSON(s.Get(keyword))
		return err != nil || strings.Contains(string(text), `"properties"`) || strings.Contains(string(text), `"$ref"`)
	})
}

func holdsOthers(v any) bool { return isOfType(v, "object") || isOfType(v, "array") }

// keyOf returns what identifies a schema within the whole: nil for an empty one.
func keyOf(s Object) *Member {
	if len(s) == 0 {
		return nil
	}
	return &s[0]
}

// resolved returns a schema unwrapped, or the one that it is a reference to.
func (w *walker) resolved(source any) Object {
	s := unwrapped(source)
	for range maxHops {
		target, ok := w.target(s)
		if !s.Has("$ref") || !ok {
			break
		}
		s = unwrapped(target)
	}
	return s
}

// alternatives returns the schemas of which a value of a schema is of one: those of its union, and
// of unions within it, or the schema alone, all unwrapped. A union whose alternatives can't be told
// apart has itself for the only one, and is written as JSON text.
func (w *walker) alternatives(source any) []Object {
	s := w.resolved(source)
	branches := branchesOf(s)
	if branches == nil {
		return []Object{s}
	}
	if known, ok := w.unions[keyOf(s)]; ok {
		return known
	}
	w.unions[keyOf(s)] = nil // within itself, it adds nothing
	var leaves []Object
	seen := map[*Member]bool{}
	for _, branch := range branches {
		for _, leaf := range w.alternatives(branch) {
			if key := keyOf(leaf); !seen[key] {
				leaves, seen[key] = append(leaves, leaf), true
			}
		}
	}
	if w.compared += len(leaves) * len(leaves); w.compared > maxCompared {
		w.excess = "the schema has too many alternatives to be fitted"
	}
	if w.compared > maxCompared || w.isAmbiguous(leaves) {
		leaves = []Object{s}
	}
	w.unions[keyOf(s)] = leaves
	return leaves
}

// Kinds of alternatives: how their values are written.
const (
	kindText   = iota + 1 // the text of their JSON
	kindObject            // an object
	kindArray             // an array
	kindOther             // a scalar, a constant, or any value
)

// kindOf returns the kind of a schema that is no union.
func (w *walker) kindOf(s Object) int {
	types := typesOf(s)
	holdsNone := len(types) != 1 || len(Constants(s)) > 0
	switch {
	case w.isText(s):
		return kindText
	case holdsNone:
		return kindOther
	case types[0] == "object":
		return kindObject
	case types[0] == "array":
		return kindArray
	}
	return kindOther
}

// isAmbiguous reports whether a value may be of two alternatives that are undone in different ways.
func (w *walker) isAmbiguous(leaves []Object) bool {
	kinds := make([]int, len(leaves))
	for i, leaf := range leaves {
		kinds[i] = w.kindOf(leaf)
	}
	hasText := slices.Contains(kinds, kindText)
	for i, a := range leaves {
		if hasText && kinds[i] == kindOther && mayBeJSON(a) {
			return true
		}
		for j, b := range leaves[:i] {
			if kinds[i] == kinds[j] && w.areAlike(a, b, kinds[i]) {
				return true
			}
		}
	}
	return false
}

// areAlike reports whether two schemas of one kind may have a value in common that holds others.
func (w *walker) areAlike(a, b Object, kind int) bool {
	switch kind {
	case kindArray:
		return true
	case kindObject:
		return !w.hasOther(a, b) && !w.hasOther(b, a)
	}
	return false
}

// propertiesOf returns the properties of an object: for a closed one those that it has to have,
// too.
func (w *walker) propertiesOf(s Object) Object {
	if known, ok := w.properties[keyOf(s)]; ok {
		return known
	}
	properties := slices.Clip(s.Object("properties"))
	for _, name := range Texts(s.Get("required")) {
		if w.dialect.Closed && !properties.Has(name) {
			properties = append(properties, Member{name, true})
		}
	}
	w.properties[keyOf(s)] = properties
	return properties
}

func isRequired(s Object, name string) bool { return slices.Contains(s.List("required"), any(name)) }

// hasOther reports whether an object always has a property that another never has, or never with
// that value.
func (w *walker) hasOther(a, b Object) bool {
	others := w.propertiesOf(b)
	for _, p := range w.propertiesOf(a) {
		isNeeded := isRequired(a, p.Name)
		isTag := isNeeded && isRequired(b, p.Name) && areDisjoint(tagsOf(p.Value), tagsOf(others.Get(p.Name)))
		isOwn := (isNeeded || w.dialect.AllRequired) && !others.Has(p.Name)
		if isTag || isOwn {
			return true
		}
	}
	return false
}

// tagsOf returns the constants of a property that are written as they are; nil for others.
func tagsOf(property any) []any {
	s, _ := property.(Object)
	values := Constants(s)
	if slices.ContainsFunc(values, holdsOthers) {
		return nil
	}
	return values
}

func areDisjoint(a, b []any) bool {
	return len(a) > 0 && len(b) > 0 && !slices.ContainsFunc(a, func(v any) bool { return holds(b, v) })
}

// mayBeJSON reports whether a text that a schema takes may be JSON.
func mayBeJSON(s Object) bool {
	isJSON := func(v any) bool {
		text, _ := v.(string)
		_, err := store.DecodeJSON([]byte(text))
		return err == nil
	}
	if values := Constants(s); len(values) > 0 {
		return slices.ContainsFunc(values, isJSON)
	}
	return slices.Contains(typesOf(s), "string") && !isReferencePattern(s.Text("pattern"))
}

// isReferencePattern reports whether a pattern is one of texts that begin with †, or with a
// parenthesis before it.
func isReferencePattern(pattern string) bool {
	return strings.HasPrefix(pattern, "^"+store.Dagger) || strings.HasPrefix(pattern, `^\(?`+store.Dagger)
}

// takesNull reports whether a schema takes null, written as null. Where two alternatives take it,
// which may be of a oneOf, null stands for a missing value.
func (w *walker) takesNull(source any) bool {
	leaves := slices.DeleteFunc(slices.Clone(w.alternatives(source)), func(s Object) bool { return w.isText(s) || !resembles(s, nil) })
	return len(leaves) == 1
}

// isObject reports whether a schema takes objects alone, and is no union.
func (w *walker) isObject(source any) bool {
	s := w.resolved(source)
	return branchesOf(s) == nil && w.kindOf(s) == kindObject
}

// resembles reports whether a value is of a schema's types and constants, and so are its properties
// where they are constants.
func resembles(s Object, v any) bool {
	text, isText := v.(string)
	types, values := typesOf(s), Constants(s)
	switch isReference := strings.HasPrefix(strings.TrimPrefix(text, "("), store.Dagger); {
	case len(values) > 0 && !holds(values, v):
		return false
	case len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isOfType(v, t) }):
		return false
	case isText:
		return isReference || !isReferencePattern(s.Text("pattern"))
	}
	object, _ := v.(map[string]any)
	for _, p := range s.Object("properties") {
		tags := tagsOf(p.Value)
		given, ok := object[p.Name]
		mayDiffer := !ok || len(tags) == 0 || given == nil && !isRequired(s, p.Name)
		if !mayDiffer && !holds(tags, given) {
			return false
		}
	}
	return true
}

// holds reports whether a list has a value.
func holds(values []any, v any) bool {
	return slices.ContainsFunc(values, func(each any) bool { return sameJSON(each, v) })
}

// sameJSON reports whether two values are written alike.
func sameJSON(a, b any) bool {
	left, isText := a.(string)
	if right, ok := b.(string); isText || ok {
		return isText && ok && left == right
	}
	written, err := JSON(a)
	other, err2 := JSON(b)
	return err == nil && err2 == nil && string(written) == string(other)
}
