package schema

import (
	"errors"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxChecks bounds how often a schema may visit one value, so that its author gets an error before
// a check of every value takes too long: where each of forty definitions refers to the next twice,
// a value would be visited 2⁴⁰ times.
const maxChecks = 100_000

var errChecks = errors.New("not a JSON Schema that can be held against a value: what it refers to would look at one value too often, more than 100000 times")

// checks counts how often a schema visits a value itself; maxChecks + 1 where it, or a schema for
// a part of the value, does so too often. A recursive schema counts once for each level, since the
// depth of the value is not known. known holds the counts so far.
func checks(s *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if s == nil {
		return 0
	}
	if n, ok := known[s]; ok {
		return n
	}
	n := 1
	known[s] = n
	for _, part := range itself(s) {
		n = min(n+checks(part, known), maxChecks+1)
	}
	for _, part := range within(s) {
		if checks(part, known) > maxChecks {
			n = maxChecks + 1
		}
	}
	known[s] = n
	return n
}

// longestChain is how many schemas may hold one another against the same value, one within the
// other: each takes of the stack, and that times the depth of the value. Beyond it a check
// would take all that there is.
const longestChain = 100

var errChain = errors.New("not a JSON Schema that can be held against a value: more than 100 schemas in it stand behind each other for one value")

// chain is the longest chain of schemas that visit one value; known holds those found before, 0
// while they are counted.
func chain(s *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if s == nil {
		return 0
	}
	if n, ok := known[s]; ok {
		return n
	}
	known[s] = 0
	n := 0
	for _, part := range itself(s) {
		n = max(n, chain(part, known))
	}
	known[s] = n + 1
	return n + 1
}

// chained reports whether a schema, or one for a part of its value, has too long a chain.
func chained(s *jsonschema.Schema) bool {
	known := map[*jsonschema.Schema]int{}
	return slices.ContainsFunc(reached([]*jsonschema.Schema{s}), func(s *jsonschema.Schema) bool { return chain(s, known) > longestChain })
}

// itself are the schemas that a schema holds against the same value.
func itself(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	return slices.AppendSeq(all, maps.Values(s.DependentSchemas))
}

// within are the schemas of the parts of a value.
func within(s *jsonschema.Schema) []*jsonschema.Schema {
	all := append([]*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}, s.PrefixItems...)
	all = slices.AppendSeq(all, maps.Values(s.Properties))
	all = slices.AppendSeq(all, maps.Values(s.PatternProperties))
	if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		all = append(all, more)
	}
	return all
}
