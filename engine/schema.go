package engine

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/store"
)

// Schema is a compiled JSON Schema, immutable and safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	measures bool                 // it may look at what a number counts
	dynamic  []*jsonschema.Schema // what a dynamic reference may refer to
}

const schemaURL = "obelus:///schema.json"

// noLoader keeps a schema from reading files or asking the network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document, and a schema must stand by itself", url)
}

// NewSchema compiles a JSON Schema of draft 2020-12, made of whatever
// [store.FromGo] takes. References to other documents are refused: a schema
// stands by itself.
func NewSchema(schema any) (_ *Schema, err error) {
	defer unbroken(&err)
	schema, err = store.FromGo(schema, "")
	if err == nil {
		err = measurable(schema, "")
	}
	if err == nil && inSchema(schema) > mostInSchema {
		err = fmt.Errorf("it has more than %d objects and booleans within", mostInSchema)
	}
	if err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patternsOfSchema())
	if err := c.AddResource(schemaURL, schema); err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	compiled, err := c.Compile(schemaURL)
	if err == nil {
		return newSchema(compiled, measures(schema))
	}
	var invalid *jsonschema.SchemaValidationError
	var reasons *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &reasons) {
		return nil, fmt.Errorf("not a JSON Schema: %s", describeInvalid("", reasons))
	}
	return nil, fmt.Errorf("not a JSON Schema: %s", strings.ReplaceAll(err.Error(), schemaURL, ""))
}

// mostInSchema bounds how many schemas one may be made of: how long it takes to compile them
// grows with the square.
const mostInSchema = 20_000

// inSchema is how much there is that may be a schema.
func inSchema(v any) (n int) {
	switch v := v.(type) {
	case bool:
		n = 1
	case map[string]any:
		n = 1
		for _, within := range v {
			n += inSchema(within)
		}
	case []any:
		for _, within := range v {
			n += inSchema(within)
		}
	}
	return n
}

// newSchema refuses a schema that would look at any value for too long.
func newSchema(compiled *jsonschema.Schema, measures bool) (*Schema, error) {
	s := &Schema{compiled: compiled, measures: measures}
	all := reached(compiled)
	for _, one := range all {
		if one.DynamicAnchor != "" || one.RecursiveAnchor {
			s.dynamic = append(s.dynamic, one)
		}
	}
	e := newEffort(s.dynamic)
	for _, one := range all {
		e.hold(one, anything{}, nil)
	}
	if e.left < 0 {
		return nil, fmt.Errorf("not a JSON Schema that can be held against a value: %w", errEffort)
	}
	return s, nil
}

// Validate tells what is wrong with a value of JSON, as [store.FromGo] gives it, which
// the error calls by name.
func (s *Schema) Validate(v any, name string) (err error) {
	defer unbroken(&err)
	if s.measures {
		if err := measurable(v, name); err != nil {
			return err
		}
	}
	err = s.check(v)
	var reasons *jsonschema.ValidationError
	if errors.As(err, &reasons) {
		return errors.New(describeInvalid(name, reasons))
	}
	if errors.Is(err, errEffort) {
		return fmt.Errorf("%sit can't be checked against its schema: %w", before(name, nil), err)
	}
	return err
}

// check is the check itself, unless it would take too long.
func (s *Schema) check(v any) error {
	e := newEffort(s.dynamic)
	if e.hold(s.compiled, v, nil); e.left < 0 {
		return errEffort
	}
	return s.compiled.Validate(v)
}

// unbroken makes an error of a panic, as a last resort: schemas and values come from
// anybody, and what they meet is another's code.
func unbroken(err *error) {
	if p := recover(); p != nil {
		*err = broken("the check against a schema broke", p)
	}
}

// property is the schema of one property of an object, nil if it has none.
// allowed is false if the schema refuses a property of that name.
func (s *Schema) property(name string) (property *Schema, allowed bool) {
	var all []*jsonschema.Schema
	allowed = true
	for at := range s.parts() {
		if at.Bool != nil {
			allowed = allowed && *at.Bool
		}
		given := len(all)
		if p, ok := at.Properties[name]; ok {
			all = append(all, p)
		}
		for pattern, p := range at.PatternProperties {
			if pattern.MatchString(name) {
				all = append(all, p)
			}
		}
		if len(all) > given {
			continue
		}
		switch more := at.AdditionalProperties.(type) {
		case *jsonschema.Schema:
			all = append(all, more)
		case bool:
			allowed = allowed && more
		}
	}
	return s.joined(all), allowed
}

// item is the schema of an array's element, nil if it has none.
func (s *Schema) item(i int) *Schema {
	var all []*jsonschema.Schema
	for at := range s.parts() {
		switch {
		case i < len(at.PrefixItems):
			all = append(all, at.PrefixItems[i])
		case at.Items2020 != nil:
			all = append(all, at.Items2020)
		}
	}
	return s.joined(all)
}

// parts are the schema itself and all that it includes by $ref and allOf: each of
// them counts.
func (s *Schema) parts() iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		if s.compiled.Ref == nil && s.compiled.AllOf == nil { // as nearly always
			yield(s.compiled)
			return
		}
		seen := map[*jsonschema.Schema]bool{}
		var walk func(at *jsonschema.Schema) bool
		walk = func(at *jsonschema.Schema) bool {
			if at == nil || seen[at] {
				return true
			}
			seen[at] = true
			if !yield(at) || !walk(at.Ref) {
				return false
			}
			return !slices.ContainsFunc(at.AllOf, func(part *jsonschema.Schema) bool { return !walk(part) })
		}
		walk(s.compiled)
	}
}

// joined is a schema to which each of several counts, nil for none.
func (s *Schema) joined(all []*jsonschema.Schema) *Schema {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return &Schema{all[0], s.measures, s.dynamic}
	}
	return &Schema{&jsonschema.Schema{DraftVersion: all[0].DraftVersion, AllOf: all}, s.measures, s.dynamic}
}

// holds tells whether a value that the schema takes may be of a type, such as
// object, and if not, of which types it is.
func (s *Schema) holds(types ...string) (want string, ok bool) {
	for at := range s.parts() {
		if at.Types != nil && !slices.ContainsFunc(types, func(typ string) bool { return slices.Contains(at.Types.ToStrings(), typ) }) {
			return strings.Join(at.Types.ToStrings(), " or "), false
		}
	}
	return "", true
}

// Lists gives a value in which each empty object is an empty array where the schema
// takes no object but an array. It is for what comes from a language in which both
// look alike (surface.md, Values). A nil Schema changes nothing.
func (s *Schema) Lists(v any) any {
	if s == nil || !holdsEmpty(v) {
		return v
	}
	return s.lists(v)
}

func (s *Schema) lists(v any) any {
	if s == nil {
		return v
	}
	switch given := v.(type) {
	case map[string]any:
		if len(given) == 0 && s.check(given) != nil && s.check([]any{}) == nil {
			return []any{}
		}
		object := make(map[string]any, len(given))
		for key, e := range given {
			property, _ := s.property(key)
			object[key] = property.lists(e)
		}
		return object
	case []any:
		list := make([]any, len(given))
		for i, e := range given {
			list[i] = s.item(i).lists(e)
		}
		return list
	}
	return v
}

// holdsEmpty tells whether there is an empty object in a value.
func holdsEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if holdsEmpty(e) {
				return true
			}
		}
		return len(v) == 0
	case []any:
		return slices.ContainsFunc(v, holdsEmpty)
	}
	return false
}

// outline tells what is wrong with a value of which only the type is known, and of
// an object the keys.
func (s *Schema) outline(v any, name string) error {
	typ := store.TypeName(v)
	if want, ok := s.holds(typ); !ok {
		return fmt.Errorf("%s: got %s, want %s", name, typ, want)
	}
	for at := range s.parts() {
		object, ok := v.(map[string]any)
		missing := slices.DeleteFunc(slices.Clone(at.Required), func(key string) bool { _, has := object[key]; return has })
		if ok && len(missing) > 0 {
			return fmt.Errorf("%s: it lacks %s", name, quoteAll(missing))
		}
	}
	return nil
}
