package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"obelus/store"
)

// known is what is known of values: their types by JSON's names, and, if they are few, the
// values themselves. Nothing is known of what has no types.
type known struct {
	types  []string
	values []any
	where  string // who says so
}

// schemaAt is a place in a JSON Schema: what a part of a value must be. Nothing is known of a
// place without one.
type schemaAt struct {
	root any // what its references are about
	at   any
}

// mostKnown is how deep what a schema refers to, or its alternatives, may stand in each other
// for its types to be known.
const mostKnown = 16

// known is what is known of the values that the schema takes.
func (s schemaAt) known() known { return s.knownWithin(mostKnown) }

func (s schemaAt) knownWithin(depth int) (k known) {
	object, _ := s.at.(map[string]any)
	if depth == 0 || object == nil {
		return k
	}
	switch types := object["type"].(type) {
	case string:
		k.types = []string{types}
	case []any:
		for _, t := range types {
			if t, ok := t.(string); ok {
				k.types = append(k.types, t)
			}
		}
	}
	if v, ok := object["const"]; ok {
		k = k.and(typesOfValues([]any{v}))
	}
	if values, ok := object["enum"].([]any); ok {
		k = k.and(typesOfValues(values))
	}
	for _, part := range s.included() {
		k = k.and(part.knownWithin(depth - 1))
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		var either known
		for i, at := range listAt(object, word) {
			one := schemaAt{s.root, at}.knownWithin(depth - 1)
			if one.types == nil {
				either = known{}
				break
			}
			if either.types = append(either.types, one.types...); i == 0 || either.values != nil {
				either.values = append(either.values, one.values...)
			}
			if one.values == nil {
				either.values = nil
			}
		}
		k = k.and(either)
	}
	return k
}

// included are the schemas that the schema says hold as well, by $ref and allOf.
func (s schemaAt) included() (all []schemaAt) {
	object, _ := s.at.(map[string]any)
	if ref, ok := object["$ref"].(string); ok {
		if at, ok := s.referred(ref); ok {
			all = append(all, at)
		}
	}
	for _, at := range listAt(object, "allOf") {
		all = append(all, schemaAt{s.root, at})
	}
	return all
}

// referred is what a reference within the schema's document leads to, by keys alone.
func (s schemaAt) referred(ref string) (schemaAt, bool) {
	rest, ok := strings.CutPrefix(ref, "#/")
	at := s.root
	for ok && rest != "" {
		var key string
		key, rest, _ = strings.Cut(rest, "/")
		object, _ := at.(map[string]any)
		at, ok = object[key]
	}
	return schemaAt{s.root, at}, ok
}

func listAt(object map[string]any, key string) []any {
	list, _ := object[key].([]any)
	return list
}

// within is the schema of a part of the value: of a property, or of an element.
func (s schemaAt) within(segment string) schemaAt { return s.withinDeep(segment, mostKnown) }

func (s schemaAt) withinDeep(segment string, depth int) schemaAt {
	object, _ := s.at.(map[string]any)
	if depth == 0 || object == nil {
		return schemaAt{}
	}
	properties, _ := object["properties"].(map[string]any)
	if at, ok := properties[segment]; ok {
		return schemaAt{s.root, at}
	}
	if i, isIndex := asIndex(segment); isIndex {
		if prefix := listAt(object, "prefixItems"); i < len(prefix) {
			return schemaAt{s.root, prefix[i]}
		}
		if at, ok := object["items"]; ok {
			return schemaAt{s.root, at}
		}
	}
	for _, part := range s.included() {
		if at := part.withinDeep(segment, depth-1); at.at != nil {
			return at
		}
	}
	return schemaAt{}
}

func typesOfValues(values []any) (k known) {
	for _, v := range values {
		if name := store.TypeName(v); !slices.Contains(k.types, name) {
			k.types = append(k.types, name)
		}
	}
	k.values = values
	return k
}

// and is what is known of values of which both are true.
func (k known) and(other known) known {
	switch {
	case k.types == nil:
		return other
	case other.types == nil:
		return k
	}
	both := known{values: k.values}
	if both.values == nil {
		both.values = other.values
	}
	for _, t := range k.types {
		if slices.ContainsFunc(other.types, func(o string) bool { return sameType(t, o) }) {
			both.types = append(both.types, t)
		}
	}
	return both
}

// sameType tells whether values of one type may be of another.
func sameType(a, b string) bool {
	return a == b || a == "integer" && b == "number" || a == "number" && b == "integer"
}

// excludes tells whether no value that is known of may be of some types.
func (k known) excludes(types ...string) bool {
	return len(k.types) > 0 && len(types) > 0 && !slices.ContainsFunc(k.types, func(t string) bool {
		return slices.ContainsFunc(types, func(o string) bool { return sameType(t, o) })
	})
}

func (k known) String() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(k.types))), " or ")
}

// typeChecker compares the types that a plan's tools and schemas tell of (additions.md, "Types
// across calls").
type typeChecker struct {
	plan     *Plan
	exists   Exists
	declared map[string]any   // schemas, by the request's messages, for their kinds
	writers  map[string][]int // calls, by the paths that they write
	below    map[string]bool  // paths below which a call writes
}

// newTypeChecker is nil for a plan of which no type is known, and for one that was accepted
// before: it is in the log.
func newTypeChecker(p *Plan, request *Request, exists Exists) *typeChecker {
	told := func(call *Call) bool { return call.tool.result != nil || call.hasGiven }
	declares := func(m store.Message) bool { return m.Schema != nil }
	if slices.ContainsFunc(p.Calls, func(call *Call) bool { return call.accepted }) ||
		!slices.ContainsFunc(p.Calls, told) && !slices.ContainsFunc(request.Context, declares) {
		return nil
	}
	t := &typeChecker{plan: p, exists: exists, declared: map[string]any{}, writers: map[string][]int{}, below: map[string]bool{}}
	for _, m := range request.Context {
		if m.Schema != nil {
			t.declared[m.Kind] = m.Schema
		}
	}
	for i, call := range p.Calls {
		for _, path := range call.Output.Writes() {
			t.writers[path.String()] = append(t.writers[path.String()], i)
			for _, above := range path.Prefixes() {
				if above != path {
					t.below[above.String()] = true
				}
			}
		}
	}
	return t
}

// types finds what can't be right.
func (c *planCompiler) types(p *Plan, request *Request, exists Exists) {
	t := newTypeChecker(p, request, exists)
	if t == nil {
		return
	}
	for i, call := range p.Calls {
		for _, param := range call.params {
			want := schemaAt{call.tool.Schema, call.tool.Schema}.within(param.name)
			for _, err := range t.template(i, param.template, param.name, fmt.Sprintf("parameter %q", param.name), want) {
				c.call(call, err)
			}
		}
		for _, err := range t.result(call) {
			c.call(call, err)
		}
	}
	if p.output != nil {
		for _, err := range t.template(-1, p.output, "output", "the output's schema", schemaAt{request.Schema, request.Schema}) {
			c.problems = append(c.problems, Problem{File: c.file, Line: request.OutputLine, Severity: SeverityError, Code: CodeTypes, Message: err.Error()})
		}
	}
}

// neverEqual finds what a call compares in vain.
func (t *typeChecker) neverEqual(call int, of *template, place string) (warnings []error) {
	of.each(func(e *Expr) {
		warnings = append(warnings, t.literals(call, e, place, equalities)...)
	})
	return warnings
}

// result finds what is wrong with what a call gives, by what is declared for where it writes.
func (t *typeChecker) result(call *Call) (wrong []error) {
	if call.Output == nil || call.method() != store.Set || call.tool.result == nil {
		return nil
	}
	got := call.resultAt(nil)
	for _, path := range call.Output.Alternatives[0] {
		schema := t.declared[path.Kind()]
		want := schemaAt{schema, schema}.inside(path.Segments()).known()
		if got.excludes(want.types...) {
			wrong = append(wrong, faultf(CodeTypes, "_outputPath: %s gets %s, as the tool's _output says, and the schema of %s wants %s there", path, withArticle(got.String()), path.Kind(), want))
		}
	}
	return wrong
}

// template finds what is wrong with the references of a parameter or an output, at a place
// where a schema wants something.
func (t *typeChecker) template(call int, of *template, place, who string, want schemaAt) (wrong []error) {
	switch {
	case of.expr != nil:
		if path, ok := of.expr.Reference(); ok {
			wanted, got := want.known(), t.typesAt(call, path)
			if got.excludes(wanted.types...) {
				return []error{faultf(CodeTypes, "%s: %s is %s, as %s says, and %s wants %s", place, path, withArticle(got.String()), got.where, who, wanted)}
			}
			return nil
		}
		return t.literals(call, of.expr, place, arithmetic)
	case of.object != nil:
		for _, key := range sortedKeys(of.object) {
			wrong = append(wrong, t.template(call, of.object[key], placeIn(place, key), who, want.within(key))...)
		}
	case of.array != nil:
		for i, e := range of.array {
			wrong = append(wrong, t.template(call, e, placeIn(place, strconv.Itoa(i)), who, want.within(strconv.Itoa(i)))...)
		}
	}
	return wrong
}

// typesAt is what is known of what a call reads at a path: by the _output of the one call that
// writes it, or, where none does, by what is declared for the kind.
func (t *typeChecker) typesAt(reader int, path store.Path) known {
	instance := ""
	if reader >= 0 {
		instance = t.plan.Calls[reader].Instance
	}
	if t.below[path.String()] {
		return known{} // a part of it may be another's
	}
	writer, where := -1, store.Path{}
	for _, above := range path.Prefixes() {
		for _, i := range t.writers[above.String()] {
			if writer >= 0 || i == reader {
				return known{}
			}
			writer, where = i, above
		}
	}
	if there, err := t.exists(path, instance); there || err != nil {
		return known{}
	}
	if writer < 0 {
		return t.declaredAt(path)
	}
	call := t.plan.Calls[writer]
	if call.method() != store.Set || call.Instance != "" && call.Instance != instance {
		return known{}
	}
	for i, alternative := range call.Output.Alternatives {
		if i > 0 && slices.ContainsFunc(alternative, path.Overlaps) { // a failure may stand there
			return known{}
		}
	}
	k := call.resultAt(path.Segments()[len(where.Segments()):])
	k.where = fmt.Sprintf("the _output of call %d (%s)", call.written, call.Tool)
	return k
}

// declaredAt is what is known of a path by what the request declares for its kind.
func (t *typeChecker) declaredAt(path store.Path) known {
	schema := t.declared[path.Kind()]
	k := schemaAt{schema, schema}.inside(path.Segments()).known()
	k.where = "the schema of " + path.Kind()
	return k
}

// resultAt is what is known of a part of what a call gives.
func (c *Call) resultAt(segments []string) known {
	if c.hasGiven && c.tool.output == nil {
		if v := valueAt(c.given, segments); v != nil && !holdsReference(c.given) {
			return typesOfValues([]any{v})
		}
		return known{}
	}
	return schemaAt{c.tool.result, c.tool.result}.inside(segments).known()
}

// inside is the schema of what stands deeper in a value.
func (s schemaAt) inside(segments []string) schemaAt {
	for _, segment := range segments {
		s = s.within(segment)
	}
	return s
}

// mismatch tells what is wrong with an operator between a reference, of whose value something is
// known, and a literal; nil for nothing.
type mismatch func(operator string, path store.Path, got known, literal any) error

// literals finds in an expression what is used with a literal that it can't go with.
func (t *typeChecker) literals(call int, e *Expr, place string, wrongly mismatch) (wrong []error) {
	if !slices.ContainsFunc(e.Reads(), func(path store.Path) bool { return t.typesAt(call, path).types != nil }) {
		return nil
	}
	for _, o := range e.LiteralOperands() {
		if err := wrongly(o.Operator, o.Path, t.typesAt(call, o.Path), o.Literal); err != nil {
			wrong = append(wrong, &fault{CodeTypes, &placedError{place, err}})
		}
	}
	return wrong
}

// arithmetic is what fails for certain as it is evaluated.
func arithmetic(operator string, path store.Path, got known, literal any) error {
	typ := store.TypeName(literal)
	wrong := false
	switch operator {
	case "-", "*", "/", "%", "**":
		wrong = got.types != nil && typ != "number" || got.excludes("number")
	case "+", "<", "<=", ">", ">=":
		wrong = got.excludes(typ)
	}
	if wrong {
		return unlike(path, got, literal)
	}
	return nil
}

// equalities are what is never true, or always.
func equalities(operator string, path store.Path, got known, literal any) error {
	switch {
	case operator != "==" && operator != "!=" || got.types == nil:
		return nil
	case got.excludes(store.TypeName(literal)):
		return fmt.Errorf("%w: they are never equal", unlike(path, got, literal))
	case got.values != nil && !slices.ContainsFunc(got.values, func(v any) bool { return sameJSON(v, literal) }):
		return fmt.Errorf("%s is never %s, as %s says%s", path, store.EncodeJSON(literal), got.where, nearValue(literal, got.values))
	}
	return nil
}

func unlike(path store.Path, got known, literal any) error {
	return fmt.Errorf("%s is %s, as %s says, and %s is %s", path, withArticle(got.String()), got.where, store.EncodeJSON(literal), store.Describe(literal))
}

// nearValue is a hint to the text of some that may be meant.
func nearValue(literal any, values []any) string {
	text, _ := literal.(string)
	var texts []string
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	if near := didYouMean(text, texts); near != "" {
		return near
	}
	return fmt.Sprintf(" (it is one of %s)", store.EncodeJSON(values))
}

// withArticle puts one before the name of a type, or of several.
func withArticle(types string) string {
	if strings.Contains(types, " or ") || types == "" {
		return types
	}
	return store.DescribeType(types)
}

// holdsReference tells whether there is an expression in a value.
func holdsReference(v any) bool {
	t, err := parseTemplate(v, "")
	return err != nil || len(t.reads()) > 0
}
