package schema

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"obelus/store"
)

// eachScalar returns a copy of a value with every scalar replaced by the result of a function.
func eachScalar(v any, of func(scalar any) any) any {
	switch v := v.(type) {
	case []any:
		all := make([]any, len(v))
		for i, e := range v {
			all[i] = eachScalar(e, of)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, e := range v {
			all[key] = eachScalar(e, of)
		}
		return all
	}
	return of(v)
}

// rules are the constraints that compare a whole value: const and enum. The library's comparison
// could not be stopped.
type rules struct {
	fixed *any
	text  string // of fixed
	enum  []any
	types map[string]bool // types of the values of enum
	texts map[string]bool // and they
}

// rulesOf takes them from a schema.
func rulesOf(s *jsonschema.Schema) *rules {
	r := &rules{fixed: s.Const}
	if r.fixed != nil {
		r.text = likeText(*r.fixed)
	}
	if s.Enum != nil {
		r.enum, r.types, r.texts = s.Enum.Values, map[string]bool{}, map[string]bool{}
		for _, v := range r.enum {
			r.types[store.TypeName(v)] = true
			r.texts[likeText(v)] = true
		}
	}
	s.Const, s.Enum = nil, nil
	return r
}

// misfit is a value that breaks a rule.
type misfit struct{ jsonschema.ErrorKind }

func (m misfit) Error() string { return m.LocalizedString(english) }

func (r *rules) check(v any, d *deadline) error {
	if r.fixed != nil && (store.TypeName(v) != store.TypeName(*r.fixed) || d.likeText(v) != r.text) {
		return misfit{&kind.Const{Got: v, Want: *r.fixed}}
	}
	if r.enum != nil && !(r.types[store.TypeName(v)] && r.texts[d.likeText(v)]) {
		return misfit{&kind.Enum{Got: v, Want: r.enum}}
	}
	return nil
}

// unique is that an array's elements differ, which the library would compare each with
// each where they have the same hash.
type unique struct{ deadline *deadline }

// Validate finds the first that does not.
func (u unique) Validate(at *jsonschema.ValidatorContext, v any) {
	array, _ := v.([]any)
	seen := make(map[string]int, len(array))
	for i, v := range array {
		text := u.deadline.likeText(v)
		if first, ok := seen[text]; ok {
			at.AddError(&kind.UniqueItems{Duplicates: [2]int{first, i}})
			return
		}
		seen[text] = i
	}
}

func (d *deadline) likeText(v any) string {
	text := likeText(v)
	d.charge(1 + len(text)/32)
	return text
}

// likeText is a text that values have in common which a schema takes for the same.
func likeText(v any) string {
	return string(store.EncodeJSON(eachScalar(v, func(v any) any {
		if n, ok := v.(json.Number); ok {
			return alikeNumber(n)
		}
		return v
	})))
}

// alikeNumber returns a number in one form, without needless zeros and with an exponent: 1e2 for
// 100, 1e2 and 100.0.
func alikeNumber(n json.Number) json.Number {
	mantissa, exponent, _ := exponential(n) // numbers that can't be measured were refused before
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant)
	switch {
	case significant == "":
		return "0"
	case negative:
		significant = "-" + significant
	}
	return json.Number(significant + "e" + strconv.Itoa(exponent))
}
