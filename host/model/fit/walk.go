package fit

import (
	"fmt"
	"slices"
	"strings"
)

// walker fits one schema to a dialect: it walks through it once.
type walker struct {
	dialect Dialect
	root    any // the schema, ordered
	notes   []string
	excess  string // why the schema is too large to be fitted; empty if it is not

	defs    Object            // the fitted schemas that are referred to
	names   map[string]string // of definitions, by reference
	orNull  []string          // names of definitions that have one which takes null too
	inlined map[string]int    // references that are being resolved in place

	// Of schemas that have been looked at: the alternatives of unions, the properties of objects, and
	// whether they are written as JSON text.
	unions     map[*Member][]Object
	properties map[*Member]Object
	texts      map[*Member]bool

	depth, nodes, compared int // counts against schemas that are too large
}

// Limits of one schema, against those that hold themselves or are too large.
const (
	maxLevels   = 32
	maxNodes    = 10_000
	maxCompared = 1_000_000 // pairs of alternatives
	maxInlined  = 2         // how often a schema that holds itself is resolved within itself
	maxHops     = 12        // references that lead to references
)

func newWalker(root any, d Dialect) *walker {
	return &walker{
		dialect: d, root: root, names: map[string]string{}, inlined: map[string]int{},
		unions: map[*Member][]Object{}, properties: map[*Member]Object{}, texts: map[*Member]bool{},
	}
}

// walk returns a schema as the dialect takes it.
func (w *walker) walk(source any, at string) Object {
	w.depth++
	defer func() { w.depth-- }()
	if w.nodes++; w.depth > maxLevels || w.nodes > maxNodes {
		w.excess = "the schema is too large to be fitted"
		source = true
	}
	whole, _ := source.(Object)
	s := Annotate(unwrapped(source), whole)
	types := typesOf(s)
	branches := branchesOf(s)
	switch {
	case w.isText(s):
		return w.text(s, at)
	case s.Has("$ref"):
		return w.reference(s, at)
	case branches != nil:
		return w.union(s, branches, at)
	case len(Constants(s)) > 0:
		return w.constants(s, at)
	case len(types) == 0:
		return w.anything(s, at)
	case areScalar(types):
		return w.scalar(s, types, at)
	case types[0] == "object":
		return w.object(s, at)
	}
	return w.array(s, at)
}

// anything fits a schema of any value, where the dialect takes one.
func (w *walker) anything(s Object, at string) Object {
	made := Object{}
	if w.dialect.Grammar {
		made = Object{{"type", []any{"null", "boolean", "number", "string", "array", "object"}}}
	}
	return w.described(made, s, at, "type")
}

// textMark begins the description of a value that is written as the text of its JSON.
const textMark = "JSON text"

// text returns the schema of a value that is written as the text of its JSON.
func (w *walker) text(s Object, at string) Object {
	description := textMark
	if !IsUnbounded(s) {
		w.note(at, "it is written as JSON text")
		if written, err := JSON(s.Without(annotations...)); err == nil {
			description += " that fits " + cutText(string(written), 1000)
		}
	}
	return described(Object{{"type", "string"}}, s, description)
}

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

// described returns a schema with what is said of another: its title and description, and its
// keywords that the dialect does not take, all but those named, which are noted.
func (w *walker) described(schema, from Object, at string, taken ...string) Object {
	var lost []string
	for _, m := range from {
		isLost := m.Name == "default" || !IsUnbounded(Object{m})
		if !isLost || slices.Contains(taken, m.Name) {
			continue
		}
		if value, err := JSON(m.Value); err == nil {
			lost = append(lost, m.Name+": "+cutText(string(value), 300))
			w.note(at, "%s is said in the description", m.Name)
		}
	}
	further := ""
	if len(lost) > 0 {
		further = "{" + strings.Join(lost, ", ") + "}"
	}
	return described(schema, from, further)
}

// constants fits an enum or a const.
func (w *walker) constants(s Object, at string) Object {
	values := Constants(s)
	if !w.dialect.Constants && slices.ContainsFunc(values, holdsOthers) {
		return w.anything(s, at)
	}
	var made Object
	var types []any
	for _, t := range []string{"string", "number", "boolean", "null", "object", "array"} {
		if slices.ContainsFunc(values, func(v any) bool { return isOfType(v, t) }) {
			types = append(types, t)
		}
	}
	switch isTyped := w.dialect.Typed || s.Has("type"); {
	case isTyped && len(types) == 1:
		made = Object{{"type", types[0]}}
	case w.dialect.Typed:
		made = Object{{"type", types}}
	}
	if s.Has("const") && w.dialect.Const {
		made = append(made, Member{"const", values[0]})
	} else {
		made = append(made, Member{"enum", values})
	}
	return w.described(made, s, at, "type", "const", "enum")
}

// scalar fits a schema of values that hold no others.
func (w *walker) scalar(s Object, types []string, at string) Object {
	made, taken := Object{{"type", typesOrOne(types)}}, []string{"type"}
	ignored := w.dialect.ignored(s)
	for _, m := range s {
		if value, ok := w.dialect.takes(m, types); ok && !slices.Contains(ignored, m.Name) {
			made, taken = append(made, Member{m.Name, value}), append(taken, m.Name)
		}
	}
	return w.described(made, s, at, taken...)
}

func typesOrOne(types []string) any {
	if len(types) == 1 {
		return types[0]
	}
	return types
}

// array fits a schema of arrays. Of a tuple the length alone is expressed.
func (w *walker) array(s Object, at string) Object {
	made, taken := Object{{"type", "array"}}, []string{"type"}
	items := s.Get("items")
	if s.Has("prefixItems") {
		items = nil
	} else {
		taken = append(taken, "items")
	}
	needsItems := !w.dialect.Untyped || w.dialect.Grammar && slices.ContainsFunc(itemBounds, s.Has)
	if items != nil || needsItems {
		made = append(made, Member{"items", w.walk(items, placeOf(at, "items"))})
	}
	for _, m := range s {
		if value, ok := w.dialect.takes(m, nil); ok && slices.Contains(itemBounds, m.Name) {
			made, taken = append(made, Member{m.Name, value}), append(taken, m.Name)
		}
	}
	return w.described(made, s, at, taken...)
}

// object fits a schema of objects.
func (w *walker) object(s Object, at string) Object {
	var fitted Object
	var must []any
	for _, p := range w.propertiesOf(s) {
		isNeeded := isRequired(s, p.Name)
		if p.Value == false && !isNeeded {
			continue
		}
		child := w.walk(p.Value, placeOf(at, p.Name))
		if w.dialect.AllRequired && !isNeeded && !w.takesNull(p.Value) {
			child = w.nullable(child)
		}
		fitted = append(fitted, Member{p.Name, child})
		if isNeeded || w.dialect.AllRequired {
			must = append(must, p.Name)
		}
	}
	made := closedObject(fitted, must)
	if len(must) == 0 && !w.dialect.AllRequired {
		made = made.Without("required")
	}
	if !w.dialect.Closed {
		made = w.open(made, s, at)
	}
	return w.described(made, s, at, "type", "properties", "required", "additionalProperties")
}

// open returns the schema of an object for a dialect of objects that may have other properties.
func (w *walker) open(made, s Object, at string) Object {
	required := slices.Clip(made.List("required"))
	for _, name := range s.List("required") {
		if text, _ := name.(string); !s.Object("properties").Has(text) {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		made = made.With("required", required)
	}
	if !s.Has("properties") {
		made = made.Without("properties")
	}
	additional := s.Get("additionalProperties")
	if additional == nil || s.Has("patternProperties") {
		return made.Without("additionalProperties")
	}
	if _, ok := additional.(Object); ok {
		additional = w.walk(additional, placeOf(at, "*"))
	}
	return made.Without("additionalProperties").With("additionalProperties", additional)
}

// closedObject returns the schema of objects with some properties and no others.
func closedObject(properties Object, required []any) Object {
	return Object{{"type", "object"}, {"properties", append(Object{}, properties...)}, {"required", append([]any{}, required...)}, {"additionalProperties", false}}
}

// union fits a union. One within it is a part of it.
func (w *walker) union(s Object, branches []any, at string) Object {
	var fitted []any
	for _, branch := range branches {
		child := w.walk(branch, at)
		if inner := child.List("anyOf"); inner != nil && len(child) == 1 {
			fitted = append(fitted, inner...)
		} else {
			fitted = append(fitted, child)
		}
	}
	taken := []string{"anyOf", "oneOf", "type"}
	for _, t := range typed {
		taken = append(taken, t.keywords...) // which the branches of a union of types repeat
	}
	return w.described(Object{{"anyOf", fitted}}, s, at, taken...)
}

// reference fits a reference. Bounds beside it are left out.
func (w *walker) reference(s Object, at string) Object {
	ref := s.Text("$ref")
	target, ok := w.target(s)
	if !ok {
		w.note(at, "%s leads nowhere in the schema, and any value is taken", ref)
		return w.anything(Object{}, at)
	}
	if !IsUnbounded(s.Without("$ref")) {
		w.note(at, "what stands beside %s is left out", ref)
	}
	if !w.dialect.Refs {
		if w.inlined[ref] >= maxInlined {
			w.note(at, "%s holds itself, and any value is taken", ref)
			return w.anything(Object{}, at)
		}
		w.inlined[ref]++
		defer func() { w.inlined[ref]-- }()
		return w.walk(target, at)
	}
	name := w.names[ref]
	if name == "" {
		name = "root"
		if steps, _ := PointerSteps(ref); len(steps) > 0 {
			name = SafeName(steps[len(steps)-1])
		}
		for w.defs.Has(name) || w.defs.Has(strings.TrimSuffix(name, orNull)) {
			name += "_"
		}
		w.names[ref] = name
		w.defs = append(w.defs, Member{name, nil})
		made := w.walk(target, "$defs."+name)
		w.defs = w.defs.With(name, made)
	}
	return Object{{"$ref", defsPrefix + name}}
}

const (
	defsPrefix = "#/$defs/"
	orNull     = "OrNull" // ends the name of a definition that takes null too
)

// definitionOf returns the name of the definition that a fitted schema is a reference to.
func definitionOf(schema any) (name string, ok bool) {
	o, _ := schema.(Object)
	return strings.CutPrefix(o.Text("$ref"), defsPrefix)
}

// nullable returns a fitted schema that takes null too. One that begins with a reference refers to
// a definition that does, which takes less where there are many.
func (w *walker) nullable(schema Object) Object {
	branches := schema.List("anyOf")
	if branches == nil {
		branches, schema = []any{schema}, Object{}
	}
	name, isRef := definitionOf(branches[0])
	if !isRef {
		return schema.With("anyOf", append(slices.Clip(branches), nullSchema))
	}
	if !slices.Contains(w.orNull, name) {
		w.orNull = append(w.orNull, name)
	}
	first := Object{{"$ref", defsPrefix + name + orNull}}
	if len(branches) == 1 {
		return first
	}
	return schema.With("anyOf", append([]any{first}, branches[1:]...))
}

var nullSchema = Object{{"type", "null"}}

// definitions returns the schemas that the fitted one refers to.
func (w *walker) definitions() Object {
	slices.Sort(w.orNull)
	defs := w.defs
	for _, name := range w.orNull {
		defs = append(defs, Member{name + orNull, Object{{"anyOf", []any{Object{{"$ref", defsPrefix + name}}, nullSchema}}}})
	}
	return defs
}

// note records a part of the schema that the fitted one does not express.
func (w *walker) note(at, format string, args ...any) {
	if at == "" {
		at = "the root"
	}
	w.notes = append(w.notes, at+": "+fmt.Sprintf(format, args...))
}

// placeOf returns a place within a schema, for notes.
func placeOf(at, step string) string { return strings.TrimPrefix(at+"."+step, ".") }

// cutText returns the beginning of a text, of at most some bytes, with a mark where it is cut.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
