package schema

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/store"
)

var english = message.NewPrinter(language.English)

// maxReasons is the number of faults that one error names.
const maxReasons = 3

// describeInvalid says which rules are broken and where, for the first few leaves.
func describeInvalid(name string, e *jsonschema.ValidationError) string {
	var reasons []string
	more := 0
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		switch {
		case len(e.Causes) > 1 && ofAlternatives(e.ErrorKind) && len(reasons) < maxReasons:
			reasons = append(reasons, describeAlternatives(name, e.Causes))
		case len(e.Causes) > 0 && !ofContains(e.ErrorKind):
			for _, cause := range placed(e.Causes) {
				walk(cause)
			}
		case len(reasons) < maxReasons:
			reasons = append(reasons, phrase.Shorten(phrase.PlacePrefix(name, e.InstanceLocation)+describeKind(e)))
		default:
			more++ // to describe them could take as long as the values are large
		}
	}
	walk(e)
	if more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(reasons, "; ")
}

// placed orders causes by their places: the library walks objects in random order, and the same
// text must come out each time.
func placed(causes []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	return slices.SortedStableFunc(slices.Values(causes), func(a, b *jsonschema.ValidationError) int {
		return cmp.Or(jsonvalue.ComparePlaces(a.InstanceLocation, b.InstanceLocation), cmp.Compare(a.SchemaURL, b.SchemaURL))
	})
}

// describeAlternatives says why each of several alternatives fails, where one has to fit.
func describeAlternatives(name string, causes []*jsonschema.ValidationError) string {
	var reasons []string
	for _, cause := range causes[:min(len(causes), maxReasons)] { // as the schema lists them
		if reason := describeInvalid(name, cause); !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if more := len(causes) - maxReasons; more > 0 {
		reasons = append(reasons, fmt.Sprintf("one of %d more", more))
	}
	return phrase.Shorten(strings.Join(reasons, ", or "))
}

// ofAlternatives reports whether a kind of error is about alternatives where one has to fit.
func ofAlternatives(k jsonschema.ErrorKind) bool {
	switch k.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return true
	}
	return false
}

func describeKind(e *jsonschema.ValidationError) string {
	if words := describeSize(e.ErrorKind); words != "" {
		return words
	}
	switch k := e.ErrorKind.(type) {
	case *kind.FalseSchema:
		return "it is not allowed here"
	case *kind.Format:
		if m, ok := k.Err.(misfit); ok {
			return describeKind(&jsonschema.ValidationError{ErrorKind: m.ErrorKind})
		}
		return fmt.Sprintf("not a valid %s: %s", k.Want, formatReason(k.Err))
	case *kind.Not:
		return `it fits what the schema's "not" rules out`
	case *kind.Contains:
		return `no element fits the schema's "contains"`
	case *kind.Required:
		return "it lacks " + phrase.QuoteAll(k.Missing)
	case *kind.Const:
		return "value must be " + string(store.EncodeJSON(k.Want))
	case *kind.AdditionalProperties:
		return "unknown " + phrase.QuoteAll(slices.Sorted(slices.Values(k.Properties)))
	case *kind.Enum:
		text := e.ErrorKind.LocalizedString(english)
		if text != "'enum' failed" { // the library's text where arrays or objects are among them
			return text
		}
		values := make([]string, len(k.Want))
		for i, v := range k.Want {
			values[i] = string(store.EncodeJSON(v))
		}
		return "value must be one of " + strings.Join(values, ", ")
	}
	return e.ErrorKind.LocalizedString(english)
}

// formatReason is why a text is not of a format, without the words of Go's packages.
func formatReason(err error) string {
	if _, ok := errors.AsType[*time.ParseError](err); ok {
		return "must be a day that there is, such as 2024-12-31"
	}
	if parse, ok := errors.AsType[*url.Error](err); ok {
		err = parse.Err
	}
	return err.Error()
}

// ofContains reports whether too few elements fit; the causes, one for each element that does not,
// would read as if all had to.
func ofContains(k jsonschema.ErrorKind) bool {
	switch k.(type) {
	case *kind.Contains, *kind.MinContains:
		return true
	}
	return false
}

// describeSize describes a value that is too small, too large, too short or too long; "" for any
// other error.
func describeSize(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return mustBe("at least", k.Want, k.Got)
	case *kind.Maximum:
		return mustBe("at most", k.Want, k.Got)
	case *kind.ExclusiveMinimum:
		return mustBe("above", k.Want, k.Got)
	case *kind.ExclusiveMaximum:
		return mustBe("below", k.Want, k.Got)
	case *kind.MultipleOf:
		return mustBe("a multiple of", k.Want, k.Got)
	case *kind.MinLength:
		return mustHave("at least", k.Want, "character", "", k.Got)
	case *kind.MaxLength:
		return mustHave("at most", k.Want, "character", "", k.Got)
	case *kind.MinItems:
		return mustHave("at least", k.Want, "element", "", k.Got)
	case *kind.MaxItems:
		return mustHave("at most", k.Want, "element", "", k.Got)
	case *kind.MinContains:
		return mustHave("at least", k.Want, "element", ` for the schema's "contains"`, len(k.Got))
	case *kind.MaxContains:
		return mustHave("at most", k.Want, "element", ` for the schema's "contains"`, len(k.Got))
	case *kind.MinProperties:
		return mustHave("at least", k.Want, "key", "", k.Got)
	case *kind.MaxProperties:
		return mustHave("at most", k.Want, "key", "", k.Got)
	}
	return ""
}

func mustBe(bound string, want, got *big.Rat) string {
	return fmt.Sprintf("must be %s %s, not %s", bound, ratText(want), ratText(got))
}

func mustHave(bound string, want int, what, which string, got int) string {
	if want != 1 {
		what += "s"
	}
	return fmt.Sprintf("must have %s %d %s%s, not %d", bound, want, what, which, got)
}

// maxBits bounds the size of a whole number that is shown with all of its digits.
const maxBits = 200

func ratText(r *big.Rat) string {
	if r.IsInt() && r.Num().BitLen() <= maxBits {
		return r.Num().String()
	}
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		return new(big.Float).SetRat(r).Text('g', 15)
	}
	return string(store.EncodeJSON(f))
}
