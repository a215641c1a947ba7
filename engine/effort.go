package engine

import (
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/store"
)

// mostEffort bounds what it takes to hold a value against a schema, in steps of some ten
// nanoseconds.
const mostEffort = 200_000_000

// What parts of it take: that a schema looks at a part of a value, which takes some hundred
// bytes too where it does not fit; and that a number is made a fraction.
const (
	effortOfLook   = 30
	effortOfNumber = 50
)

var errEffort = errors.New("it would take too long: what the schema refers to looks at the same again and again, or compares too much")

// effort counts down what it takes to hold values against schemas, before that is done:
// nothing ends it once it has begun. Where it may end early, as where one of several
// schemas suffices, that it does not.
type effort struct {
	left    int
	before  int                  // for what is held against a value before that is done
	dynamic []*jsonschema.Schema // what a dynamic reference may refer to
}

// scope is a schema, and those above it that look at the same value.
type scope struct {
	schema *jsonschema.Schema
	above  *scope
	asks   bool // what none of them has looked at
}

// anything is a value of which nothing is known.
type anything struct{}

func newEffort(dynamic []*jsonschema.Schema) *effort {
	return &effort{mostEffort, mostEffort, dynamic}
}

// hold counts what it takes to hold a value against a schema.
func (e *effort) hold(s *jsonschema.Schema, v any, above *scope) {
	if e.left -= effortOfLook; s == nil || s.Bool != nil || e.left < 0 {
		return
	}
	for at := above; at != nil; at = at.above {
		if e.left--; at.schema == s { // a circle, which is refused
			return
		}
	}
	if s.Types != nil && !takesType(*s.Types, v) {
		return
	}
	e.left -= len(s.Required)
	e.compare(s, v)
	here := &scope{s, above, s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil || above != nil && above.asks}
	if here.asks {
		e.left -= effortOfLook * parts(v)
	}
	for part := range itself(s) {
		e.hold(part, v, here)
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		e.refer(s, v, here)
	}
	e.choose(s, v, here)
	switch v := v.(type) {
	case map[string]any:
		e.object(s, v, here)
	case []any:
		e.array(s, v)
	case string:
		e.left -= len(v) / 16 // its characters are counted, perhaps
		e.match(s.Pattern, v)
	case json.Number:
		e.number(s, v)
	}
}

// parts is how many parts a value has.
func parts(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

// takesType tells whether a schema of these types looks further at a value.
func takesType(types jsonschema.Types, v any) bool {
	var is jsonschema.Types
	switch v.(type) {
	case anything:
		return true
	case json.Number:
		is.Add("integer")
	}
	is.Add(store.TypeName(v))
	return types&is != 0
}

// itself are the schemas that a schema holds against the same value, but for its condition.
func itself(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		for _, one := range [...]*jsonschema.Schema{s.Ref, s.Not} {
			if one != nil && !yield(one) {
				return
			}
		}
		for _, several := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
			for _, one := range several {
				if !yield(one) {
					return
				}
			}
		}
	}
}

// choose counts for a condition, and for what is held against the same value if it takes
// that, or if not.
func (e *effort) choose(s *jsonschema.Schema, v any, here *scope) {
	if s.If == nil {
		return
	}
	left := e.left
	e.hold(s.If, v, here)
	if e.before -= left - e.left; e.before < 0 || e.left < 0 {
		e.left = -1
		return
	}
	_, unknown := v.(anything)
	takes := !unknown && s.If.Validate(v) == nil
	if unknown || takes {
		e.hold(s.Then, v, here)
	}
	if unknown || !takes {
		e.hold(s.Else, v, here)
	}
}

// refer counts for what a schema refers to by what is above it: whatever that may be.
func (e *effort) refer(s *jsonschema.Schema, v any, here *scope) {
	for _, to := range e.dynamic {
		if s.RecursiveRef != nil && to.RecursiveAnchor || s.DynamicRef != nil && to.DynamicAnchor == s.DynamicRef.Anchor {
			e.hold(to, v, here)
		}
	}
	if s.RecursiveRef != nil && !s.RecursiveRef.RecursiveAnchor {
		e.hold(s.RecursiveRef, v, here)
	}
	if s.DynamicRef != nil && s.DynamicRef.Ref.DynamicAnchor != s.DynamicRef.Anchor {
		e.hold(s.DynamicRef.Ref, v, here)
	}
}

// reached are a schema and all others that it holds against anything.
func reached(s *jsonschema.Schema) (all []*jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{nil: true}
	next := []*jsonschema.Schema{s}
	for len(next) > 0 {
		s, next = next[len(next)-1], next[:len(next)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		all = append(all, s)
		next = append(slices.AppendSeq(next, itself(s)), s.If, s.Then, s.Else, s.RecursiveRef, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems)
		if s.DynamicRef != nil {
			next = append(next, s.DynamicRef.Ref)
		}
		next = append(next, s.PrefixItems...)
		next = slices.AppendSeq(next, maps.Values(s.Properties))
		next = slices.AppendSeq(next, maps.Values(s.PatternProperties))
		next = slices.AppendSeq(next, maps.Values(s.DependentSchemas))
		for _, v := range append(slices.Collect(maps.Values(s.Dependencies)), s.AdditionalProperties, s.Items, s.AdditionalItems) {
			switch v := v.(type) {
			case *jsonschema.Schema:
				next = append(next, v)
			case []*jsonschema.Schema:
				next = append(next, v...)
			}
		}
	}
	return all
}

func (e *effort) object(s *jsonschema.Schema, object map[string]any, here *scope) {
	for key := range object {
		if with := s.DependentSchemas[key]; with != nil {
			e.hold(with, object, here)
		}
		if with, ok := s.Dependencies[key].(*jsonschema.Schema); ok {
			e.hold(with, object, here)
		}
	}
	for key, part := range object {
		if e.left -= effortOfLook; e.left < 0 {
			return
		}
		known := false
		if p := s.Properties[key]; p != nil {
			e.hold(p, part, nil)
			known = true
		}
		for pattern, p := range s.PatternProperties {
			if e.match(pattern, key) {
				e.hold(p, part, nil)
				known = true
			}
		}
		switch more, ok := s.AdditionalProperties.(*jsonschema.Schema); {
		case known:
		case ok:
			e.hold(more, part, nil)
		case s.AdditionalProperties == nil && s.UnevaluatedProperties != nil:
			e.hold(s.UnevaluatedProperties, part, nil)
		}
		if s.PropertyNames != nil {
			e.hold(s.PropertyNames, key, nil)
		}
	}
}

func (e *effort) array(s *jsonschema.Schema, array []any) {
	first, more := s.PrefixItems, s.Items2020
	switch items := s.Items.(type) { // of an older draft
	case *jsonschema.Schema:
		more = items
	case []*jsonschema.Schema:
		first = items
		more, _ = s.AdditionalItems.(*jsonschema.Schema)
	}
	if more == nil {
		more = s.UnevaluatedItems
	}
	for i, part := range array {
		if e.left -= effortOfLook; e.left < 0 {
			return
		}
		switch {
		case i < len(first):
			e.hold(first[i], part, nil)
		case more != nil:
			e.hold(more, part, nil)
		}
		if s.Contains != nil {
			e.hold(s.Contains, part, nil)
		}
	}
	if s.UniqueItems {
		e.unique(array)
	}
}

// match counts for a pattern, and tells whether a text matches it.
func (e *effort) match(with jsonschema.Regexp, text string) bool {
	p, ok := with.(*pattern)
	if !ok {
		return false
	}
	e.left -= (len(text) + patternBytes) * p.price
	return e.left >= 0 && p.MatchString(text)
}

// number counts for what a schema asks of a number.
func (e *effort) number(s *jsonschema.Schema, n json.Number) {
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil && s.Types == nil {
		return
	}
	size := digits(n)
	e.left -= effortOfNumber + size
	if s.MultipleOf != nil {
		size += (s.MultipleOf.Num().BitLen() + s.MultipleOf.Denom().BitLen()) / 3
		e.left -= effortOfNumber + size + size*size/10_000
	}
}

// compare counts for the values that a schema compares with a value.
func (e *effort) compare(s *jsonschema.Schema, v any) {
	if s.Const != nil {
		e.equal(*s.Const, v)
	}
	if s.Enum != nil {
		for _, one := range s.Enum.Values {
			if e.equal(one, v); e.left < 0 {
				return
			}
		}
	}
}

// equal counts for a comparison, and tells whether two values may be equal.
func (e *effort) equal(a, b any) bool {
	if e.left--; e.left < 0 {
		return false
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		may := true
		for key, within := range a { // which are compared in any order
			other, ok := b[key]
			may = ok && e.equal(within, other) && may
		}
		return may
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, e.equal)
	case string:
		e.left -= len(a) / 64
	case json.Number:
		b, ok := b.(json.Number)
		if ok {
			e.left -= 2*effortOfNumber + digits(a) + digits(b)
		}
		return ok
	}
	return a == b
}

// unique counts for finding what stands twice in an array.
func (e *effort) unique(array []any) {
	if len(array) > 20 { // the elements are hashed
		e.walk(array)
		return
	}
	for i, a := range array {
		for _, b := range array[:i] {
			e.equal(a, b)
		}
	}
}

// walk counts for all that is in a value.
func (e *effort) walk(v any) {
	e.left -= effortOfLook
	switch v := v.(type) {
	case map[string]any:
		for key, within := range v {
			e.left -= effortOfLook + len(key)/16
			e.walk(within)
		}
	case []any:
		for _, within := range v {
			e.walk(within)
		}
	case string:
		e.left -= len(v) / 16
	case json.Number:
		e.left -= effortOfNumber + digits(v)
	}
}
