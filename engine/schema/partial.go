package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A declared schema constrains mostly single parts of an object or an array, and those constraints
// are checked where the part is written. Others concern the value as a whole: its size, its type,
// its combinations. A write below the value may break these.

// constrainsWhole reports whether a schema has a constraint on a value that no part of it alone can
// break. Lower bounds are no such constraint: the rest may come later.
func constrainsWhole(s *jsonschema.Schema) bool {
	return s.Enum != nil || s.Const != nil || s.Not != nil || s.AnyOf != nil || s.OneOf != nil || s.If != nil ||
		s.MaxProperties != nil || s.DependentSchemas != nil || s.UnevaluatedProperties != nil ||
		s.MaxItems != nil || s.UniqueItems || s.MaxContains != nil || s.UnevaluatedItems != nil ||
		// The last three in older drafts.
		s.DynamicRef != nil || s.RecursiveRef != nil || s.Dependencies != nil || s.AdditionalItems != nil
}

// partialSchemasOf returns, for some schemas, their constraints on a value as a whole; all are the
// schemas of the document.
func partialSchemasOf(some, all []*jsonschema.Schema) map[*jsonschema.Schema]*jsonschema.Schema {
	if len(some) == 0 {
		return nil
	}
	r := relaxed{}
	for _, one := range all {
		made := *one
		r[one] = &made
	}
	for _, made := range r {
		r.relax(made)
	}
	partial := make(map[*jsonschema.Schema]*jsonschema.Schema, len(some))
	for _, one := range some {
		partial[one] = shallow(r[one])
		if !countsLeft(one) {
			// The constraints of one among several.
			partial[one].Types, partial[one].AllOf = nil, r[one].AllOf[len(one.AllOf):]
		}
	}
	return partial
}

// countsLeft reports whether a schema constrains the members that its other keywords leave.
func countsLeft(s *jsonschema.Schema) bool {
	return s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil || s.AdditionalItems != nil
}

// shallow returns the constraints of one schema on a value, without those on its members and those
// of included schemas; all of them where it counts the members left.
func shallow(one *jsonschema.Schema) *jsonschema.Schema {
	made := *one
	if countsLeft(one) {
		return &made
	}
	made.PropertyNames, made.Ref, made.AllOf = nil, nil, nil
	made.Properties, made.PatternProperties, made.AdditionalProperties = nil, nil, nil
	made.PrefixItems, made.Items2020, made.Items = nil, nil, nil
	return &made
}

// relaxed holds copies of schemas for values that are not complete: they require no member, and of
// alternatives several may still apply.
type relaxed map[*jsonschema.Schema]*jsonschema.Schema

// relax makes a copy of a schema one for a value that is not complete.
func (r relaxed) relax(s *jsonschema.Schema) {
	s.Required, s.MinProperties, s.MinItems, s.DependentRequired = nil, nil, nil, nil
	if s.Contains != nil {
		s.MinContains = new(int)
	}
	s.Ref, s.RecursiveRef, s.Then, s.Else = r[s.Ref], r[s.RecursiveRef], r[s.Then], r[s.Else]
	s.Items2020, s.UnevaluatedProperties, s.UnevaluatedItems = r[s.Items2020], r[s.UnevaluatedProperties], r[s.UnevaluatedItems]
	s.AllOf, s.AnyOf, s.PrefixItems = r.list(s.AllOf), r.list(s.AnyOf), r.list(s.PrefixItems)
	if s.OneOf != nil {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{DraftVersion: s.DraftVersion, AnyOf: r.list(s.OneOf)})
		s.OneOf = nil
	}
	s.Properties, s.DependentSchemas, s.PatternProperties = maps.Clone(s.Properties), maps.Clone(s.DependentSchemas), maps.Clone(s.PatternProperties)
	for name, one := range s.Properties {
		s.Properties[name] = r[one]
	}
	for name, one := range s.DependentSchemas {
		s.DependentSchemas[name] = r[one]
	}
	for pattern, one := range s.PatternProperties {
		s.PatternProperties[pattern] = r[one]
	}
	s.Dependencies = maps.Clone(s.Dependencies)
	for name, one := range s.Dependencies {
		if s.Dependencies[name] = r.any(one); s.Dependencies[name] == nil {
			delete(s.Dependencies, name) // names of required members
		}
	}
	s.AdditionalProperties, s.Items, s.AdditionalItems = r.anyOr(s.AdditionalProperties), r.anyOr(s.Items), r.anyOr(s.AdditionalItems)
}

func (r relaxed) list(all []*jsonschema.Schema) []*jsonschema.Schema {
	made := slices.Clone(all)
	for i, one := range made {
		made[i] = r[one]
	}
	return made
}

// any is the copy of a schema or of several, nil for anything else.
func (r relaxed) any(v any) any {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return r[v]
	case []*jsonschema.Schema:
		return r.list(v)
	}
	return nil
}

// anyOr is any, and anything else as it is.
func (r relaxed) anyOr(v any) any {
	if made := r.any(v); made != nil {
		return made
	}
	return v
}
