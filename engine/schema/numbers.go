package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/internal/phrase"
)

// maxMeasured is how many digits a number may have that is held against a schema, and
// how large its exponent may be: it is made a fraction of whole numbers.
const maxMeasured = 1000

// measuring are the keywords that look at what numbers count. Of type it is integer.
var measuring = []string{"const", "enum", "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf", "uniqueItems"}

// measures reports whether a schema, or one within it, has one of them.
func measures(schema any) bool {
	switch s := schema.(type) {
	case map[string]any:
		for key, v := range s {
			if slices.Contains(measuring, key) || measures(v) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(s, measures)
	case string:
		return s == "integer"
	}
	return false
}

// measurable refuses numbers that are too long to be held against a schema.
func measurable(v any, name string) error {
	location, n := vast(v)
	if n == "" {
		return nil
	}
	slices.Reverse(location)
	shown := string(n)
	if len(shown) > 30 {
		shown = shown[:20] + "…"
	}
	return fmt.Errorf("%sthe number %s can't be checked against a schema: it has more than %d digits, or an exponent beyond ±%[3]d", phrase.PlacePrefix(name, location), shown, maxMeasured)
}

// vast finds such a number, "" if there is none, and the steps to it from the last.
func vast(v any) (location []string, n json.Number) {
	switch v := v.(type) {
	case json.Number:
		if digits(v) > maxMeasured {
			return nil, v
		}
	case map[string]any:
		first := ""
		for key, e := range v {
			if within, m := vast(e); m != "" && (n == "" || key < first) {
				location, n, first = append(within, key), m, key
			}
		}
	case []any:
		for i, e := range v {
			if location, n = vast(e); n != "" {
				return append(location, strconv.Itoa(i)), n
			}
		}
	}
	return location, n
}

// digits is of how many digits a number is, or its exponent moves it.
func digits(n json.Number) int {
	_, exponent, err := exponential(n)
	if err != nil {
		return math.MaxInt
	}
	return max(len(n), exponent, -exponent)
}

// exponential is a number as what stands before its exponent, and that, 0 for none.
func exponential(n json.Number) (mantissa string, exponent int, err error) {
	mantissa = string(n)
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		exponent, err = strconv.Atoi(mantissa[i+1:])
		mantissa = mantissa[:i]
	}
	return mantissa, exponent, err
}
