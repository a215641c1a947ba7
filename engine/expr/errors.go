package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"obelus/store"
)

// rewording is what we say for a message of expr's, which speaks of how it is built.
type rewording struct {
	of  *regexp.Regexp
	say func(parts []string) string
}

// inWords fill in words the parts of a message: $1 as it stands, @1 as a type.
func inWords(words string) func(parts []string) string {
	return func(parts []string) string {
		var pairs []string
		for i, part := range parts {
			pairs = append(pairs, fmt.Sprintf("$%d", i), part, fmt.Sprintf("@%d", i), typed(part))
		}
		return strings.NewReplacer(pairs...).Replace(words)
	}
}

// rewordings are tried in order. Few expressions are wrong, so they are made when one is.
var rewordings = sync.OnceValue(func() (all []rewording) {
	say := func(pattern string, say func(parts []string) string) {
		all = append(all, rewording{regexp.MustCompile(pattern), say})
	}
	add := func(pattern, words string) { say(pattern, inWords(words)) }

	add(`^unexpected token EOF|^unexpected end of expression$`, "the expression ends too early")
	say(`^unexpected token \w+\((".*")\)`, func(m []string) string {
		if token, err := strconv.Unquote(m[1]); err == nil {
			return fmt.Sprintf("unexpected %q", token)
		}
		return "unexpected " + m[1]
	})
	add(`^literal not terminated`, "a string is not closed")
	add(`^unrecognized character: U\+\w+ '(.+)'$`, `unexpected "$1"`)
	add(`^unexpected token String`, `unexpected ""`)
	add(`^unexpected token (.*)`, "unexpected $1")
	add(`^invalid integer literal`, "the integer is too large to calculate with")
	add(`^invalid \w+ literal`, "this is no number, or one that is too large")
	add(`^error parsing regexp: (.*)`, "not a regular expression: $1")
	// Which can only be passed on.
	add(`^(?:interface|invalid|reflect|cannot) .*json\.Number`, "an integer here is too large to calculate with")
	add(`^(?:runtime error: )?integer divide by zero$`, "a division by zero")
	// It counts optional arguments too.
	add(`^expected at least \d+ arguments$`, "there are too few arguments")
	add(`^a map key must be `, "a key of an object is a name, a string, a number or an expression in parentheses")

	add(`^builtin (\w+) takes only array \(got (.+)\)$`, "$1 takes an array, not @2")
	add(`^cannot reverse (.+)$`, "reverse takes an array, not @1")
	add(`^cannot take from (.+)$`, "take takes an array, not @1")
	add(`^cannot take float64 elements$`, "take takes an integer: write int(…) around a number that may have a fraction")
	add(`^cannot take (.+) elements$`, "take takes a number of elements, not @1")
	add(`^cannot slice (.+)$`, "arrays and strings have slices, not @1")
	add(`^cannot get (first|last) element from (.+)$`, "$1 takes an array, not @2")
	add(`^cannot use (.+) as argument \(type bool\) to call `+truthName, "true or false is needed here, not @1")
	add(`^cannot use (.+) as argument \(type (.+)\) to call (\w+)`, "$3 takes @2, not @1")
	add(`^non-integer slice index (.+)$`, "a slice begins and ends at an integer, not @1")
	add(`^hash of unhashable type: (.+)$`, "a group goes by a scalar, not by @1")
	add(`^invalid argument for (\w+) \(type (.+)\)$`, "$1 does not take @2")

	say(`^invalid operation: (\S+) \(mismatched types? (.+?)(?: and (.+))?\)$`, func(m []string) string { return takes(m[1], m[2], m[3]) })
	say(`^invalid operation: (.+) ([<>]=?|\*\*|[-+*/%]) (.+)$`, func(m []string) string { return takes(m[2], m[1], m[3]) })
	say(`^invalid operation: - (.+)$`, func(m []string) string { return takes("-", m[1], "") })
	add(`^interface conversion: interface {} is (.+), not bool$`, "true or false is needed here, not @1")
	add(`^interface conversion: interface {} is (.+), not (.+)$`, "@2 is needed here, not @1")
	add(`interface|reflect|runtime error|map\[|\[\]|strconv|cannot (fetch|use|get)|float64|argument for`, "a value here has not the type that is needed")
	return all
})

// reworded is a message of expr's in words that its readers know.
func reworded(message string) string {
	message = strings.NewReplacer("%!s(<nil>)", "null", "<nil>", "null").Replace(message)
	for _, r := range rewordings() {
		if parts := r.of.FindStringSubmatch(message); parts != nil {
			return r.say(parts)
		}
	}
	return message
}

// takes describes the types that an operator takes, after it got values of other types: for a unary
// operator the second is empty. A reference has no type before it is read.
func takes(op, left, right string) string {
	unary, got := right == "", []string(nil)
	for _, name := range []string{left, right} {
		switch {
		case name == "float64" && op == "%":
			got = append(got, "a number with a fraction")
		case name != "" && name != "interface {}":
			got = append(got, typed(name))
		}
	}
	needs := ""
	switch {
	case unary && (op == "-" || op == "+"):
		needs = " takes a number, not "
	case unary, op == "and", op == "or":
		needs = " takes true or false, not "
	case op == "==", op == "!=", op == "in":
		needs = " compares values of one type, not "
	case strings.ContainsAny(op, "<>"):
		needs = " compares two numbers or two strings, not "
	case op == "%":
		needs = " takes two integers, not "
	case strings.Contains("- * / ** ^", op):
		needs = " takes two numbers, not "
	case op == "contains", op == "matches", strings.HasSuffix(op, "sWith"):
		needs = " takes two strings, not "
	default:
		needs = " does not take "
	}
	return op + needs + strings.Join(got, " and ")
}

// typed is a value of a type of Go's, as JSON calls it: "a number".
func typed(name string) string {
	switch {
	case name == "string", name == "[]uint8":
		name = "string"
	case name == "nil", name == "null", name == "unknown", name == "zero", name == "invalid":
		name = "null"
	case name == "bool":
		name = "boolean"
	case strings.HasPrefix(name, "map"):
		name = "object"
	case strings.HasPrefix(name, "["), name == "slice":
		name = "array"
	case strings.HasPrefix(name, "interface"):
		return "what it got"
	default:
		name = "number"
	}
	return store.DescribeType(name)
}
