package expr

import (
	"encoding/json"
	"math/bits"
	"strings"

	"obelus/store"
)

// kinds is a set of the types of values that an operand may have.
type kinds uint8

const (
	nulls kinds = 1 << iota
	booleans
	integers  // numbers that are calculated with as int
	fractions // numbers that are calculated with as float64
	large     // integers too large to calculate with
	texts
	arrays
	objects

	numbers  = integers | fractions
	anything = nulls | booleans | numbers | large | texts | arrays | objects
)

// groups is the result of groupBy: by key, the elements that have it.
type groups map[any][]any

// kindOf returns the type of a value.
func kindOf(v any) kinds {
	switch v := v.(type) {
	case nil:
		return nulls
	case bool:
		return booleans
	case int:
		return integers
	case float64:
		return fractions
	case json.Number:
		n, ok := numberOf(v)
		switch {
		case !ok:
			return large
		case n.isInt:
			return integers
		}
		return fractions
	case string:
		return texts
	case []any:
		return arrays
	}
	return objects
}

// isKnown reports whether the set has one type, numbers of any form being one.
func (k kinds) isKnown() bool {
	return bits.OnesCount8(uint8(k)) == 1 || k != 0 && k&^(numbers|large) == 0
}

// describe names a type as JSON does, for errors. It is empty for a set of several.
func (k kinds) describe() string {
	if !k.isKnown() {
		return ""
	}
	switch k {
	case nulls:
		return "null"
	case booleans:
		return "a boolean"
	case large:
		return "an integer too large to calculate with"
	case texts:
		return "a string"
	case arrays:
		return "an array"
	case objects:
		return "an object"
	}
	return "a number"
}

// inWords lists the types of a set, for errors.
func (k kinds) inWords() string {
	var all []string
	for _, part := range []kinds{numbers, texts, arrays, objects} {
		if k&part != 0 {
			all = append(all, part.describe())
		}
	}
	if k == booleans {
		return "true or false"
	}
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// errLargeOperand is the error for an operand that can only be handed on.
const errLargeOperand = "an integer here is too large to calculate with"

// describe names a value's type as JSON does, for errors.
func describe(v any) string { return kindOf(v).describe() }

// typeName is what JSON calls the type of a value.
func typeName(v any) string {
	switch v.(type) {
	case int, float64:
		return "number"
	case groups:
		return "object"
	}
	return store.TypeName(v)
}
