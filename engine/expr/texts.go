package expr

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"obelus/engine/internal/phrase"
	"obelus/engine/lazyregexp"
	"obelus/engine/strftime"
	"obelus/store"
)

// asText is string: a text as it is, and all else as JSON has it.
func asText(ev *evaluation, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		return text, ev.spend(extent(text))
	}
	return jsonText(ev, args)
}

// jsonText is toJSON: a value as JSON, on one line.
func jsonText(ev *evaluation, args []any) (any, error) {
	if len(args) != 1 {
		return fail("toJSON takes one value")
	}
	v, err := ev.settle(args[0])
	if err != nil {
		return nil, err
	}
	text := string(store.EncodeJSON(v))
	return text, ev.spend(len(text))
}

// jsonValue is fromJSON: the value of a text of JSON.
func jsonValue(ev *evaluation, args []any) (any, error) {
	if len(args) != 1 {
		return fail("fromJSON takes one string")
	}
	text, ok := args[0].(string)
	if !ok {
		return fail("fromJSON takes a string, not %s", describe(args[0]))
	}
	if err := ev.spend(len(text)); err != nil {
		return nil, err
	}
	v, err := store.DecodeGiven([]byte(text), store.MaxDepth)
	if err != nil {
		return fail("fromJSON takes a string of JSON: %s", err)
	}
	return v, nil
}

// unique is uniq: an array without the elements that are equal to an earlier one.
func unique(ev *evaluation, args []any) (any, error) {
	if len(args) != 1 {
		return fail("uniq takes one array")
	}
	array, ok := args[0].([]any)
	if !ok {
		return fail("uniq takes an array, not %s", describe(args[0]))
	}
	seen := map[string]bool{}
	all := []any{}
	for _, element := range array {
		text, err := jsonText(ev, []any{element}) // equal values have the same
		if err != nil {
			return nil, err
		}
		if !seen[text.(string)] {
			seen[text.(string)] = true
			all = append(all, element)
		}
	}
	return all, nil
}

// numberPattern is a pattern of format: groups of three, digits that are always written, decimals
// that are, decimals that are written unless they end in zeros, and a percent sign.
var numberPattern = lazyregexp.New(`^(#,##)?(0+)(?:\.(0*)(#*))?( ?%)?$`)

// patternSyntax says in an error what a pattern may be.
const patternSyntax = `a pattern: zeros, perhaps with "#,##" before them for groups of three, then perhaps "." with zeros and signs # for decimals, then perhaps "%" or " %"`

// formatted is format: a number or a date as a pattern says.
func formatted(ev *evaluation, args []any) (any, error) {
	if len(args) != 2 {
		return fail(`format takes a number and a pattern such as "0.00", or a date and one such as "%%d.%%m.%%Y"`)
	}
	if text, ok := args[0].(string); ok {
		return formattedDate(ev, text, args[1])
	}
	written, isNumber := "", true
	switch n := plain(args[0]).(type) {
	case int:
		written = strconv.Itoa(n)
	case float64:
		if math.IsInf(n, 0) || math.IsNaN(n) {
			return fail("format takes a finite number")
		}
		written = strconv.FormatFloat(n, 'g', -1, 64)
	case json.Number:
		if written = string(n); len(written) > MaxExpression { // it takes long to read
			return fail("format takes a number of at most %d digits", MaxExpression)
		}
	default:
		isNumber = false
	}
	number, ok := new(big.Rat).SetString(written)
	if !isNumber || !ok {
		return fail("format takes a number or a date, not %s", describe(args[0]))
	}
	pattern, _ := args[1].(string)
	parts := numberPattern().FindStringSubmatch(pattern)
	if parts == nil || strings.HasSuffix(strings.TrimRight(pattern, " %"), ".") {
		return fail("format takes %s", patternSyntax)
	}
	groups, digits, decimals, optional, percent := parts[1], parts[2], parts[3], parts[4], parts[5]
	if percent != "" {
		number.Mul(number, big.NewRat(100, 1))
	}
	whole, fraction, _ := strings.Cut(new(big.Rat).Abs(number).FloatString(len(decimals)+len(optional)), ".")
	for len(fraction) > len(decimals) && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	sign := ""
	if number.Sign() < 0 && strings.Trim(whole+fraction, "0") != "" {
		sign = "-"
	}
	whole = strings.Repeat("0", max(len(digits)-len(whole), 0)) + whole
	if groups != "" {
		var grouped strings.Builder
		for i, digit := range whole {
			if i > 0 && (len(whole)-i)%3 == 0 {
				grouped.WriteByte(',')
			}
			grouped.WriteRune(digit)
		}
		whole = grouped.String()
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	text := sign + whole + fraction + percent
	return text, ev.spend(len(text))
}

// formattedDate is format of a date, with or without a time, in its own zone.
func formattedDate(ev *evaluation, text string, pattern any) (any, error) {
	date, err := time.Parse(time.RFC3339, text)
	if err != nil {
		date, err = time.Parse(time.DateOnly, text)
	}
	if err != nil {
		return fail("format takes a number or a date such as 2026-01-31 or 2026-01-31T12:00:00Z, not the text %q", phrase.Shorten(text))
	}
	layout, _ := pattern.(string)
	if !strings.Contains(layout, "%") {
		return fail(`format of a date takes a pattern such as "%%d.%%m.%%Y"`)
	}
	written, err := strftime.Format(date, layout)
	if err != nil {
		return fail("format: %s", err)
	}
	return written, ev.spend(len(written))
}
