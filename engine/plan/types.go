package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/store"
)

// typeChecker compares the types that a plan's tools and schemas declare (protocol §7).
type typeChecker struct {
	*sources
	given   []store.Message  // of the request, with data that fits the schema declared for its kind
	writing map[string][]int // calls, by the paths that they write
	below   map[string]bool  // paths below which a call writes
}

// newTypeChecker returns nil for a plan without known types, and for one that is in the log: it was
// accepted before.
func newTypeChecker(p *Plan, request *Request, s *sources) *typeChecker {
	told := func(call *Call) bool { return call.Definition.Result != nil || call.Given.Set }
	if slices.ContainsFunc(p.Calls, func(call *Call) bool { return call.accepted }) ||
		!slices.ContainsFunc(p.Calls, told) && len(s.declared) == 0 {
		return nil
	}
	t := &typeChecker{sources: s, writing: map[string][]int{}, below: map[string]bool{}}
	for _, m := range request.Context {
		if m.Schema != nil {
			t.given = slices.DeleteFunc(t.given, func(before store.Message) bool { return before.Kind == m.Kind })
		}
		if m.Data.Set {
			t.given = append(t.given, m)
		}
	}
	for i, call := range p.Calls {
		for _, path := range call.Output.Writes() {
			t.writing[path.String()] = append(t.writing[path.String()], i)
			for _, above := range path.Prefixes() {
				if above != path {
					t.below[above.String()] = true
				}
			}
		}
	}
	return t
}

// checkTypes reports types that can't be right, and references to what a schema rules out. Its
// error is one of exists.
func (c *planCompiler) checkTypes(p *Plan, request *Request) error {
	t := c.checker
	if t == nil {
		return nil
	}
	for i, call := range p.Calls {
		for _, param := range call.Params {
			want := schema.Node{Root: call.Definition.Schema, At: call.Definition.Schema}.Child(param.Name)
			for _, err := range t.template(i, param.Template, param.Name, fmt.Sprintf("parameter %q", param.Name), want) {
				c.call(call, err)
			}
		}
		for _, part := range templates(call) {
			if strings.HasPrefix(part.Name, "_") && part.Expr != nil {
				for _, err := range t.literals(i, part.Expr, part.Name, arithmetic) {
					c.call(call, err)
				}
			}
		}
		for _, err := range t.result(call) {
			c.call(call, err)
		}
	}
	if p.Output != nil {
		for _, err := range t.template(-1, p.Output, "output", "the output's schema", schema.Node{Root: request.Schema, At: request.Schema}) {
			c.problems = append(c.problems, c.outputProblem(SeverityError, CodeTypes, err.Error()))
		}
	}
	return c.refuseRuledOut()
}

// neverEqual finds comparisons in a call that are always true or always false.
func (t *typeChecker) neverEqual(call int, of *expr.Template, place string) (warnings []error) {
	of.Each(func(e *expr.Expr) {
		warnings = append(warnings, t.literals(call, e, place, equalities)...)
		for _, pair := range e.Equated() {
			left, right := t.typesAt(call, pair[0]), t.typesAt(call, pair[1])
			if right.Types != nil && left.Excludes(right.Types...) {
				err := fmt.Errorf("%s is %s, as %s says, and %s is %s, as %s says: they are never equal",
					pair[0], phrase.WithArticle(left.String()), left.Where, pair[1], phrase.WithArticle(right.String()), right.Where)
				warnings = append(warnings, &Fault{CodeTypes, &expr.PlacedError{Place: place, Err: err}})
			}
		}
	})
	return warnings
}

// textCondition warns of a condition that is a text, and so holds whatever that says.
func (t *typeChecker) textCondition(i int, call *Call) error {
	if call.If == nil || call.If.Expr == nil {
		return nil
	}
	for _, path := range call.If.Expr.Ends() {
		if got := t.typesAt(i, path); len(got.Types) == 1 && got.Types[0] == "string" {
			return Faultf(CodeTypes, `_if: %s is a string, as %s says, and every string holds, "false" too: compare it, as in %[1]s == "true"`, path, got.Where)
		}
	}
	return nil
}

// result checks a call's result type against the schemas that are declared for the paths that it
// writes.
func (t *typeChecker) result(call *Call) (wrong []error) {
	if call.Output == nil || call.JoinMethod() != store.Set || call.Definition.Result == nil {
		return nil
	}
	got := call.resultAt(nil)
	for _, path := range call.Output.Alternatives[0] {
		declared, _ := t.declared.of(path.Kind(), call.Instance)
		want := declared.Descendant(path.Segments()).Possible()
		if got.Excludes(want.Types...) {
			wrong = append(wrong, Faultf(CodeTypes, "_outputPath: %s gets %s, as the tool's _output says, and the schema of %s wants %s there", path, phrase.WithArticle(got.String()), path.Kind(), want))
		}
	}
	return wrong
}

// template checks the references of a parameter or an output against the schema at its place.
func (t *typeChecker) template(call int, of *expr.Template, place, who string, want schema.Node) (wrong []error) {
	switch {
	case of.Expr != nil:
		if path, ok := of.Expr.Reference(); ok {
			wanted, got := want.Possible(), t.typesAt(call, path)
			if got.Excludes(wanted.Types...) {
				return []error{Faultf(CodeTypes, "%s: %s is %s, as %s says, and %s wants %s", place, path, phrase.WithArticle(got.String()), got.Where, who, wanted)}
			}
			return nil
		}
		return t.literals(call, of.Expr, place, arithmetic)
	case of.Object != nil:
		for _, key := range jsonvalue.SortedKeys(of.Object) {
			wrong = append(wrong, t.template(call, of.Object[key], placeIn(place, key), who, want.Child(key))...)
		}
	case of.Array != nil:
		for i, e := range of.Array {
			wrong = append(wrong, t.template(call, e, placeIn(place, strconv.Itoa(i)), who, want.Child(strconv.Itoa(i)))...)
		}
	}
	return wrong
}

// typesAt returns the possible values that a call reads at a path: by the _output of the one call
// that writes it, or, where none does, by the schema declared for the kind.
func (t *typeChecker) typesAt(reader int, path store.Path) schema.Possible {
	instance := ""
	if reader >= 0 {
		instance = t.plan.Calls[reader].Instance
	}
	if t.below[path.String()] {
		return schema.Possible{} // another call may write a part of it
	}
	writer, where := -1, store.Path{}
	for _, above := range path.Prefixes() {
		for _, i := range t.writing[above.String()] {
			if writer >= 0 || i == reader {
				return schema.Possible{}
			}
			writer, where = i, above
		}
	}
	if writer < 0 && t.givenAt(path, instance) {
		return t.declaredAt(path, instance)
	}
	if there, err := t.exists(path, instance); there || err != nil {
		return schema.Possible{}
	}
	if writer < 0 {
		return t.declaredAt(path, instance)
	}
	call := t.plan.Calls[writer]
	if call.JoinMethod() != store.Set || call.Instance != "" && call.Instance != instance {
		return schema.Possible{}
	}
	for i, alternative := range call.Output.Alternatives {
		if i > 0 && slices.ContainsFunc(alternative, path.Overlaps) { // it may hold a failure
			return schema.Possible{}
		}
	}
	k := call.resultAt(path.Segments()[len(where.Segments()):])
	k.Where = fmt.Sprintf("the _output of call %d (%s)", call.Written, call.Tool)
	return k
}

// givenAt reports whether the request gives a value at a path, which fits the schema that is
// declared for its kind: it comes after whatever the log has there.
func (t *typeChecker) givenAt(path store.Path, instance string) bool {
	return slices.ContainsFunc(t.given, func(m store.Message) bool {
		return m.Kind == path.Kind() && m.Instance == instance && schema.ValueAt(m.Data.Value, path.Segments()) != nil
	})
}

// declaredAt returns the possible values of a path by the schema that the request declares for its
// kind.
func (t *typeChecker) declaredAt(path store.Path, instance string) schema.Possible {
	declared, _ := t.declared.of(path.Kind(), instance)
	k := declared.Descendant(path.Segments()).Possible()
	k.Where = "the schema of " + path.Kind()
	return k
}

// resultAt returns the possible values of a part of a call's result.
func (c *Call) resultAt(segments []string) schema.Possible {
	if c.Given.Set && c.Definition.output == nil {
		if v := schema.ValueAt(c.Given.Value, segments); v != nil && !holdsReference(c.Given.Value) {
			return schema.TypesOfValues([]any{v})
		}
		return schema.Possible{}
	}
	return schema.Node{Root: c.Definition.Result, At: c.Definition.Result}.Descendant(segments).Possible()
}

// mismatch reports why an operator does not go between a reference, whose possible values are
// given, and a literal; nil if it may.
type mismatch func(operator string, path store.Path, got schema.Possible, literal any) error

// literals finds the literals in an expression that do not go with their operator and reference.
func (t *typeChecker) literals(call int, e *expr.Expr, place string, wrongly mismatch) (wrong []error) {
	if !slices.ContainsFunc(e.Reads(), func(path store.Path) bool { return t.typesAt(call, path).Types != nil }) {
		return nil
	}
	for _, o := range e.LiteralOperands() {
		got := t.typesAt(call, o.Path)
		if slices.ContainsFunc(o.Among, func(v any) bool { return !got.Excludes(store.TypeName(v)) }) {
			continue
		}
		if err := wrongly(o.Operator, o.Path, got, o.Literal); err != nil {
			wrong = append(wrong, &Fault{CodeTypes, &expr.PlacedError{Place: place, Err: err}})
		}
	}
	return wrong
}

// arithmetic is what fails for certain as it is evaluated.
func arithmetic(operator string, path store.Path, got schema.Possible, literal any) error {
	typ := store.TypeName(literal)
	wrong := false
	switch operator {
	case "-", "*", "/", "%", "**":
		wrong = got.Types != nil && typ != "number" || got.Excludes("number")
	case "+", "<", "<=", ">", ">=":
		wrong = got.Excludes(typ)
	}
	if wrong {
		return unlike(path, got, literal)
	}
	return nil
}

// equalities reports a comparison that is never true, or always.
func equalities(operator string, path store.Path, got schema.Possible, literal any) error {
	switch {
	case !slices.Contains([]string{"==", "!=", "in"}, operator) || got.Types == nil:
		return nil
	case got.Excludes(store.TypeName(literal)):
		return fmt.Errorf("%w: they are never equal", unlike(path, got, literal))
	case operator != "in" && got.Values != nil && !slices.ContainsFunc(got.Values, func(v any) bool { return jsonvalue.Equal(v, literal) }):
		return fmt.Errorf("%s is never %s, as %s says%s", path, store.EncodeJSON(literal), got.Where, nearValue(literal, got.Values))
	}
	return nil
}

func unlike(path store.Path, got schema.Possible, literal any) error {
	return fmt.Errorf("%s is %s, as %s says, and %s is %s", path, phrase.WithArticle(got.String()), got.Where, store.EncodeJSON(literal), store.Describe(literal))
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
	if near := spell.DidYouMean(text, texts); near != "" {
		return near
	}
	return fmt.Sprintf(" (it is one of %s)", store.EncodeJSON(values))
}

// holdsReference reports whether there is an expression in a value.
func holdsReference(v any) bool {
	t, err := expr.ParseTemplate(v, "")
	return err != nil || len(t.Reads()) > 0
}
