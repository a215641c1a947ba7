package yaml

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/luastd/internal/formats"
)

var (
	integerPattern  = lazyregexp.New(`^[-+]?[0-9]+$`)
	basedPattern    = lazyregexp.New(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	floatPattern    = lazyregexp.New(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	infinitePattern = lazyregexp.New(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// maxBasedDigits bounds hexadecimal and octal numbers, which take long to convert, in digits.
const maxBasedDigits = 1000

// resolve reads a plain scalar by the core schema of YAML 1.2.
func (p *parser) resolve(text string, at int) any {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	switch {
	case !strings.ContainsRune("+-.0123456789", rune(text[0])):
	case integerPattern().MatchString(text):
		digits := strings.TrimLeft(strings.TrimLeft(text, "+-"), "0")
		switch {
		case digits == "":
			return json.Number("0")
		case text[0] == '-':
			return json.Number("-" + digits)
		}
		return json.Number(digits)
	case basedPattern().MatchString(text):
		if len(text) > maxBasedDigits {
			p.fail(at, "a number has more than %d digits", maxBasedDigits)
		}
		n, _ := new(big.Int).SetString(text, 0)
		return json.Number(n.String())
	case floatPattern().MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) {
			p.fail(at, "%.100s is too large for a number", text)
		}
		if math.Abs(f) > 1<<53 { // without an exponent it would be an exact whole number
			return json.Number(strconv.FormatFloat(f, 'e', -1, 64))
		}
		return json.Number(formats.CompactJSON(f))
	case infinitePattern().MatchString(text):
		p.fail(at, "%s is not a number of JSON", text)
	}
	return text
}

// yamlKind is the tag of a value.
func yamlKind(v any) string {
	switch v := v.(type) {
	case nil:
		return "!!null"
	case bool:
		return "!!bool"
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return "!!float"
		}
		return "!!int"
	case []any:
		return "!!seq"
	case map[string]any:
		return "!!map"
	}
	return "!!str"
}
