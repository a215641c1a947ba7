package schema

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/engine/internal/crash"
	"obelus/engine/internal/phrase"
	"obelus/store"
)

// Schema is a compiled JSON Schema, immutable and safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	measures bool // it may compare a number by its value
	// Constraints on a value as a whole, by schema, see partialSchemasOf.
	PartialSchemas map[*jsonschema.Schema]*jsonschema.Schema
	// The meaning of its references depends on the way to them.
	dynamic  bool
	shapes   map[*jsonschema.Schema]*shape // of itself and its parts
	deadline *deadline
	source   any // the document that it was compiled from; nil for a part of another
	options  []Option
	spare    chan *Schema // copies for use while it is busy
}

// Option changes how values are held against a schema.
type Option func(*schemaCompiler)

// IgnoreFormats makes format a note for people, which no value breaks. Without it a text must
// be what format says, where that is one of the formats of JSON Schema 2020-12 but idn-email,
// idn-hostname and uri-template.
func IgnoreFormats(c *schemaCompiler) { c.ignoreFormats = true }

const schemaURL = "obelus:///schema.json"

// noLoader keeps a schema from reading files or asking the network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document, and a schema must stand by itself", url)
}

// New compiles a JSON Schema of draft 2020-12, made of whatever
// [store.FromGo] takes. References to other documents are refused: a schema
// stands by itself.
func New(schema any, options ...Option) (_ *Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = crash.PanicError("the check of a schema broke", p)
		}
	}()
	schema, err = store.FromGo(schema, "")
	if err == nil {
		err = measurable(schema, "")
	}
	if err == nil && inSchema(schema) > maxInSchema {
		err = fmt.Errorf("it has more than %d objects, arrays and booleans within", maxInSchema)
	}
	if err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	s, err := compileSchema(schema, options)
	if err == nil && checks(s.compiled, map[*jsonschema.Schema]int{}) > maxChecks {
		return nil, errChecks
	}
	if err == nil && chained(s.compiled) {
		return nil, errChain
	}
	if err == nil {
		s.source, s.options, s.spare = schema, options, make(chan *Schema, 4)
		return s, nil
	}
	var invalid *jsonschema.SchemaValidationError
	var reasons *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &reasons) {
		return nil, fmt.Errorf("not a JSON Schema: %s", describeInvalid("", reasons))
	}
	if message := describeReference(err, schema); message != "" {
		return nil, fmt.Errorf("not a JSON Schema: %s", message)
	}
	return nil, fmt.Errorf("not a JSON Schema: %s", strings.ReplaceAll(err.Error(), schemaURL, ""))
}

// maxInSchema bounds how many schemas one may be made of: how long it takes to compile them
// grows with the square.
const maxInSchema = 20_000

// inSchema is how much there is that may be a schema, or is in an array that may have to
// be one of different elements.
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
			if _, ok := within.([]any); ok {
				n++
			}
			n += inSchema(within)
		}
	}
	return n
}

// Validate reports why a JSON value, as [store.FromGo] returns it, breaks the schema. The error
// calls the value by name.
func (s *Schema) Validate(v any, name string) (err error) {
	if s.measures {
		if err := measurable(v, name); err != nil {
			return err
		}
	}
	if s.shapes[s.compiled].accepts(v) {
		return nil
	}
	err = s.alone(func(s *Schema) error { return s.compiled.Validate(v) })
	var reasons *jsonschema.ValidationError
	switch {
	case errors.As(err, &reasons):
		return &ValidationError{describeInvalid(name, reasons), emptyForArray(reasons, v)}
	case err == errSlow:
		return fmt.Errorf("%sit can't be held against its schema: that takes more than %v: give it less at once, or make the schema simpler", phrase.PlacePrefix(name, nil), maxCheckTime)
	case err == errStack:
		return fmt.Errorf("%sit can't be held against its schema: %w: give it less at once, or make the pattern simpler", phrase.PlacePrefix(name, nil), err)
	}
	return err
}

// alone runs a function with exclusive use of the schema, or of a copy: a check that takes long
// must not delay others.
func (s *Schema) alone(do func(s *Schema) error) error {
	if s.deadline.mu.TryLock() {
		return s.deadline.runLocked(func() error { return do(s) })
	}
	if s.source == nil {
		return s.deadline.locked(func() error { return do(s) })
	}
	var other *Schema
	select {
	case other = <-s.spare:
	default:
		var err error
		if other, err = compileSchema(s.source, s.options); err != nil {
			return err
		}
	}
	defer func() {
		select {
		case s.spare <- other:
		default:
		}
	}()
	return other.deadline.locked(func() error { return do(other) })
}

// Property is the schema of one property of an object, nil if it has none.
// allowed is false if the schema refuses a property of that name.
func (s *Schema) Property(name string) (property *Schema, allowed bool) {
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
			matches := false
			err := s.deadline.locked(func() error { matches = pattern.MatchString(name); return nil })
			if err != nil {
				return nil, true // the check of the whole reports it
			}
			if matches {
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

// Item is the schema of an array's element, nil if it has none.
func (s *Schema) Item(i int) *Schema {
	var all []*jsonschema.Schema
	for at := range s.parts() {
		items, isList := at.Items.([]*jsonschema.Schema) // of drafts before 2020-12
		each, isOne := at.Items.(*jsonschema.Schema)
		rest, more := at.AdditionalItems.(*jsonschema.Schema)
		switch {
		case i < len(at.PrefixItems):
			all = append(all, at.PrefixItems[i])
		case at.Items2020 != nil:
			all = append(all, at.Items2020)
		case isOne:
			all = append(all, each)
		case i < len(items):
			all = append(all, items[i])
		case isList && more:
			all = append(all, rest)
		}
	}
	return s.joined(all)
}

// parts are the schema itself and all that it includes by $ref and allOf: each of
// them counts.
func (s *Schema) parts() iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		if s.compiled.Ref == nil && s.compiled.AllOf == nil { // the usual case
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
		return s.part(all[0])
	}
	joined := &jsonschema.Schema{DraftVersion: all[0].DraftVersion, AllOf: all}
	return s.part(joined)
}

// part is one of the schemas that this is made of.
func (s *Schema) part(compiled *jsonschema.Schema) *Schema {
	return &Schema{compiled: compiled, measures: s.measures, PartialSchemas: s.PartialSchemas, dynamic: s.dynamic, shapes: s.shapes, deadline: s.deadline}
}

// holds reports whether an accepted value may be of a type, such as object, and if not, of which
// types it is.
func (s *Schema) holds(types ...string) (want string, ok bool) {
	for at := range s.parts() {
		if at.Types != nil && !slices.ContainsFunc(types, func(typ string) bool { return slices.Contains(at.Types.ToStrings(), typ) }) {
			return strings.Join(at.Types.ToStrings(), " or "), false
		}
	}
	return "", true
}

// Lists returns a value in which an empty object is an empty array where the schema names the type
// array (by type, const or enum), accepts an empty array, and accepts no empty object. It is for
// values from a language in which both look alike (cmd/SURFACE.md, Values): any other empty object
// stays one. A nil Schema changes nothing.
func (s *Schema) Lists(v any) any {
	if s == nil || !HoldsEmptyObject(v) {
		return v
	}
	listed := v
	err := s.alone(func(s *Schema) error {
		listed = s.lists(v)
		return nil
	})
	if err != nil {
		return v // the check reports it
	}
	return listed
}

// lists validates the value as it is, and with an empty array for each empty object that is
// refused: so it is the library that finds the schemas of a place.
func (s *Schema) lists(v any) any {
	var refused, still, kept placeTree
	refused.addErrors(s.compiled.Validate(v))
	trial := arrayTrial{}
	tried := refused.replaceEmpty(v, nil, trial.array)
	if len(trial) == 0 {
		return v
	}
	s.deadline.trial = trial
	still.addErrors(s.compiled.Validate(tried))
	s.deadline.trial = nil
	for _, tried := range trial {
		if tried.takesEmpty() && !still.has(tried.location) {
			kept.add(tried.location)
		}
	}
	return kept.replaceEmpty(v, nil, func([]string) any { return []any{} })
}

// HoldsEmptyObject reports whether there is an empty object in a value.
func HoldsEmptyObject(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if HoldsEmptyObject(e) {
				return true
			}
		}
		return len(v) == 0
	case []any:
		return slices.ContainsFunc(v, HoldsEmptyObject)
	}
	return false
}

// Outline reports why a value breaks the schema by its type alone, an object by its keys, an array
// by its length.
func (s *Schema) Outline(v any, name string) error {
	if s.shapes[s.compiled].outlines(v) {
		return nil
	}
	typ := store.TypeName(v)
	if want, ok := s.holds(typ); !ok {
		return fmt.Errorf("%sgot %s, want %s", phrase.PlacePrefix(name, nil), typ, want)
	}
	for at := range s.parts() {
		shape := &jsonschema.Schema{
			DraftVersion: at.DraftVersion, Required: at.Required, DependentRequired: at.DependentRequired, PropertyNames: at.PropertyNames,
			MinProperties: at.MinProperties, MaxProperties: at.MaxProperties, MinItems: at.MinItems, MaxItems: at.MaxItems,
		}
		if err := s.part(shape).Validate(v, name); err != nil {
			return err
		}
	}
	return nil
}
