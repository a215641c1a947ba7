package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"obelus/engine/schema"
)

// fitter fits one schema to a dialect.
type fitter struct {
	dialect Dialect
	root    any // the schema, ordered
	notes   []string

	defs      map[string]*node  // by reference
	nullables map[string]string // names of definitions that take null too, by the names of others
	names     map[string]string // of definitions, by reference
	order     []string          // of references
	inlined   map[string]int    // references that are being resolved in place

	depth, nodes, merges int // counts against schemas that hold themselves

	mu      sync.Mutex // guards checked, and the validators of nodes
	checked any        // the root, as a definition of other schemas; nil until it is needed
}

// Limits of one fitted schema.
const (
	maxLevels       = 32
	maxNodes        = 10_000
	maxConjunctions = 10_000
)

// node is a place in a fitted schema, with what undoes it.
type node struct {
	schema Object // fitted
	source any    // the original, to decide between branches of a union
	never  bool   // no value fits the original

	text       bool             // a JSON text is written in place of the value
	properties map[string]*node // of an object
	optional   map[string]bool  // properties for which null means that they are missing
	additional *node
	items      *node
	prefix     []*node
	branches   []*node        // of a union
	ref        string         // a reference to a definition
	validator  *schema.Schema // of source; nil until it is needed
}

// scalars are the types of values that hold no others.
var scalars = []string{"string", "number", "integer", "boolean", "null"}

// build fits a schema.
func (f *fitter) build(source any, at string) *node {
	f.depth++
	defer func() { f.depth-- }()
	if f.nodes++; f.depth > maxLevels || f.nodes > maxNodes {
		f.note(at, "any value is taken, for the schema is too large")
		return f.untyped(Object{}, source, at)
	}
	simple, ok := f.simplify(source, 0).(Object)
	if !ok {
		return &node{schema: Object{{"type", "null"}}, source: source, never: true}
	}
	if ref, ok := simple.Get("$ref").(string); ok {
		return f.reference(ref, source, at)
	}
	if branches, ok := simple.Get("anyOf").([]any); ok {
		return f.union(branches, simple, source, at)
	}
	if simple.Has("const") || simple.Has("enum") {
		return f.constants(simple, source, at)
	}
	types := Types(simple)
	if len(types) == 0 {
		types = ImpliedTypes(simple)
	}
	if len(types) > 1 && slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(scalars, t) }) {
		branches := make([]any, len(types))
		for i, t := range types {
			branches[i] = simple.Without("title", "description").With("type", t)
		}
		return f.union(branches, simple, source, at)
	}
	switch {
	case len(types) == 0:
		return f.untyped(simple, source, at)
	case types[0] == "object":
		return f.object(simple, source, at)
	case types[0] == "array":
		return f.array(simple, source, at)
	}
	return f.scalar(simple, types, source, at)
}

// ImpliedTypes returns the type that a schema without one is about, by its keywords.
func ImpliedTypes(s Object) []string {
	for _, about := range []struct {
		typ      string
		keywords []string
	}{
		{"object", []string{"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}},
		{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
		{"string", []string{"pattern", "format", "minLength", "maxLength"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		if slices.ContainsFunc(about.keywords, s.Has) {
			return []string{about.typ}
		}
	}
	return nil
}

// untyped fits a schema of any value.
func (f *fitter) untyped(s Object, source any, at string) *node {
	if !f.dialect.Untyped {
		return f.asText(s, source)
	}
	made := Object{}
	if f.dialect.Grammar {
		made = Object{{"type", []any{"null", "boolean", "number", "string", "array", "object"}}}
	}
	return &node{schema: f.described(made, s, f.dropped(s, at, "type")), source: source}
}

// asText has a value written as the text of its JSON.
func (f *fitter) asText(s Object, source any) *node {
	description := textMark
	if shown, ok := source.(Object); ok && !IsUnbounded(shown) {
		if written, err := JSON(shown.Without(annotations...)); err == nil {
			description += " that fits " + cutText(string(written), 1000)
		}
	}
	return &node{schema: described(Object{{"type", "string"}}, s, description), source: source, text: true}
}

// textMark begins the description of a value that is written as the text of its JSON.
const textMark = "JSON text"

// described returns a schema with the title and description of another, and a further text.
func described(schema, from Object, further string) Object {
	if title := from.Text("title"); title != "" {
		schema = schema.With("title", title)
	}
	if text := strings.TrimSpace(from.Text("description") + " " + further); text != "" {
		schema = schema.With("description", text)
	}
	return schema
}

func (f *fitter) described(schema, from Object, lost []string) Object {
	further := ""
	if len(lost) > 0 {
		further = "{" + strings.Join(lost, ", ") + "}"
	}
	return described(schema, from, further)
}

// dropped returns the keywords of a schema that the dialect does not take, but those named, with
// their values, and notes them.
func (f *fitter) dropped(s Object, at string, taken ...string) []string {
	var lost []string
	for _, m := range s {
		if slices.Contains(taken, m.Name) || slices.Contains(annotations, m.Name) && m.Name != "default" || !schema.IsKeyword(m.Name) {
			continue
		}
		value, err := JSON(m.Value)
		if err != nil {
			continue
		}
		lost = append(lost, m.Name+": "+cutText(string(value), 300))
		f.note(at, "%s is said in the description", m.Name)
	}
	return lost
}

// constants fits an enum or a const.
func (f *fitter) constants(s Object, source any, at string) *node {
	values := s.List("enum")
	if s.Has("const") {
		values = []any{s.Get("const")}
	}
	if types := Types(s); len(types) > 0 {
		values = slices.DeleteFunc(slices.Clone(values), func(v any) bool {
			return !slices.ContainsFunc(types, func(t string) bool { return isOfType(v, t) })
		})
	}
	if len(values) == 0 {
		return &node{schema: Object{{"type", "null"}}, source: source, never: true}
	}
	n := &node{source: source}
	if !f.dialect.Constants && slices.ContainsFunc(values, func(v any) bool { return isOfType(v, "object") || isOfType(v, "array") }) {
		n.text, values = true, slices.Clone(values)
		for i, v := range values {
			text, _ := JSON(v)
			values[i] = string(text)
		}
	}
	var made Object
	if types := typesOfValues(values); f.dialect.Typed || n.text || s.Has("type") && len(types) == 1 {
		made = Object{{"type", oneOrList(types)}}
	}
	if s.Has("const") && f.dialect.Const {
		made = append(made, Member{"const", values[0]})
	} else {
		made = append(made, Member{"enum", values})
	}
	lost := f.dropped(s, at, "type", "const", "enum")
	if n.schema = f.described(made, s, lost); n.text {
		n.schema = n.schema.With("description", strings.TrimSpace(textMark+". "+n.schema.Text("description")))
	}
	return n
}

func typesOfValues(values []any) (types []string) {
	for _, v := range values {
		for _, t := range []string{"string", "number", "boolean", "null", "object", "array"} {
			if isOfType(v, t) {
				types = unionOf(types, []string{t})
			}
		}
	}
	return types
}

func oneOrList(types []string) any {
	if len(types) == 1 {
		return types[0]
	}
	return listOf(types)
}

// scalar fits a schema of values that hold no others.
func (f *fitter) scalar(s Object, types []string, source any, at string) *node {
	made := Object{{"type", oneOrList(types)}}
	taken := []string{"type"}
	ignored := f.ignored(s)
	for _, m := range s {
		if value, ok := f.takes(m, types); ok && !slices.Contains(ignored, m.Name) {
			made, taken = append(made, Member{m.Name, value}), append(taken, m.Name)
		}
	}
	return &node{schema: f.described(made, s, f.dropped(s, at, taken...)), source: source}
}

// ignored returns the bounds of texts that a grammar does not heed beside others in the schema.
func (f *fitter) ignored(s Object) []string {
	if !f.dialect.Grammar {
		return nil
	}
	for i, name := range []string{"pattern", "format"} {
		if _, ok := f.takes(Member{name, s.Get(name)}, nil); ok {
			return [][]string{{"format", "minLength", "maxLength"}, {"minLength", "maxLength"}}[i]
		}
	}
	return nil
}

// takes returns the value of a bound as the dialect takes it.
func (f *fitter) takes(m Member, types []string) (any, bool) {
	d := f.dialect
	switch m.Name {
	case "pattern":
		pattern, _ := m.Value.(string)
		return d.takesPattern(pattern)
	case "format":
		name, _ := m.Value.(string)
		return name, slices.Contains(d.Formats, name)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if d.IntegerBounds && (len(types) != 1 || types[0] != "integer" || !isOfType(m.Value, "integer")) {
			return nil, false
		}
	case "minItems":
		if d.OneMinItem && numberOf(m.Value) > 1 {
			return nil, false
		}
	}
	return m.Value, slices.Contains(d.Keywords, m.Name)
}

// array fits a schema of arrays.
func (f *fitter) array(s Object, source any, at string) *node {
	prefix, items := s.List("prefixItems"), s.Get("items")
	if len(prefix) > 0 && !f.dialect.Tuples {
		return f.asText(s, source)
	}
	n := &node{source: source}
	made := Object{{"type", "array"}}
	for i, inner := range prefix {
		n.prefix = append(n.prefix, f.build(inner, placeOf(at, fmt.Sprint(i))))
	}
	if len(prefix) > 0 {
		made = append(made, Member{"prefixItems", schemasOf(n.prefix)})
	}
	bounded := slices.ContainsFunc(itemBounds, s.Has)
	if items != nil || !f.dialect.Untyped || f.dialect.Grammar && bounded {
		n.items = f.build(items, placeOf(at, "items"))
		made = append(made, Member{"items", n.items.schema})
	}
	taken := []string{"type", "items", "prefixItems"}
	if len(prefix) > 0 && f.dialect.Grammar {
		made, taken = f.tuple(n, s)
	}
	for _, m := range s {
		if value, ok := f.takes(m, nil); ok && slices.Contains(itemBounds, m.Name) && !slices.Contains(taken, m.Name) {
			made, taken = append(made, Member{m.Name, value}), append(taken, m.Name)
		}
	}
	n.schema = f.described(made, s, f.dropped(s, at, taken...))
	return n
}

// schemasOf returns the fitted schemas of nodes.
func schemasOf(nodes []*node) []any {
	schemas := make([]any, len(nodes))
	for i, n := range nodes {
		schemas[i] = n.schema
	}
	return schemas
}

// maxLengths is how many lengths of one tuple are written out for a grammar.
const maxLengths = 8

// tuple returns the schema of arrays with a prefix for a grammar, and which keywords it expresses.
// There is one schema for each length; if they are too many, the elements may come in any order.
func (f *fitter) tuple(n *node, s Object) (made Object, taken []string) {
	closed := n.items != nil && n.items.never
	least, most := 0, len(n.prefix)+1
	if bound := numberOf(s.Get("minItems")); bound > 0 {
		least = int(min(bound, float64(most)))
	}
	if bound := numberOf(s.Get("maxItems")); bound >= 0 {
		most = int(min(bound, float64(most)))
	}
	if closed {
		most = min(most, len(n.prefix))
	}
	made = Object{{"type", "array"}}
	if most <= len(n.prefix) && least <= most && most-least < maxLengths {
		var lengths []any
		for length := least; length <= most; length++ {
			tuple := Object{{"type", "array"}, {"prefixItems", schemasOf(n.prefix[:length])}}
			if length == 0 {
				tuple = Object{{"const", []any{}}}
			}
			lengths = append(lengths, tuple)
		}
		taken = []string{"type", "items", "prefixItems", "minItems", "maxItems"}
		if len(lengths) == 1 {
			return lengths[0].(Object), taken
		}
		return append(made, Member{"anyOf", lengths}), taken
	}
	elements := schemasOf(n.prefix)
	if !closed {
		if n.items == nil {
			n.items = f.build(true, "")
		}
		elements = append(elements, n.items.schema)
	}
	made = append(made, Member{"items", Object{{"anyOf", elements}}})
	if closed && !s.Has("maxItems") {
		made = append(made, Member{"maxItems", len(n.prefix)})
	}
	return made, []string{"type"}
}

// reference fits a reference.
func (f *fitter) reference(ref string, source any, at string) *node {
	target, ok := f.target(ref)
	if !ok {
		f.note(at, "%s leads nowhere in the schema, and any value is taken", ref)
		return f.untyped(Object{}, source, at)
	}
	if !f.dialect.Refs {
		if f.inlined[ref] >= maxInlined {
			f.note(at, "%s is written as JSON text, for it holds itself", ref)
			return f.asText(Object{}, target)
		}
		f.inlined[ref]++
		defer func() { f.inlined[ref]-- }()
		return f.build(target, at)
	}
	if f.defs[ref] == nil {
		def := &node{source: target}
		f.defs[ref], f.names[ref] = def, f.nameOf(ref)
		f.order = append(f.order, ref)
		*def = *f.build(target, "$defs."+f.names[ref])
	}
	return &node{schema: Object{{"$ref", "#/$defs/" + f.names[ref]}}, source: source, ref: ref}
}

// maxInlined is how often a schema that holds itself is resolved within itself.
const maxInlined = 2

// target returns the schema that a reference leads to.
func (f *fitter) target(ref string) (any, bool) {
	steps, ok := PointerSteps(ref)
	if !ok {
		return nil, false
	}
	return Resolve(f.root, steps)
}

// nameOf returns a name for the definition that a reference leads to: its own, if that is free.
func (f *fitter) nameOf(ref string) string {
	steps, _ := PointerSteps(ref)
	name := "root"
	if len(steps) > 0 {
		name = SafeName(steps[len(steps)-1])
	}
	return f.freeName(name)
}

// freeName returns a name of a definition that no other has.
func (f *fitter) freeName(name string) string {
	for slices.Contains(slices.Collect(maps.Values(f.names)), name) || slices.Contains(slices.Collect(maps.Values(f.nullables)), name) {
		name += "_"
	}
	return name
}

// follow returns the node that a reference leads to.
func (f *fitter) follow(n *node) *node {
	for hops := 0; n != nil && n.ref != "" && hops < maxMerges; hops++ {
		n = f.defs[n.ref]
	}
	return n
}

// cutText returns the beginning of a text, of at most some bytes, with a mark where it is cut.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
