package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// rewording is what we say for a message of expr's, which speaks of how it is built.
type rewording struct {
	of  *regexp.Regexp
	say func(parts []string) string
}

// rewordings are tried in order. Few expressions are wrong, so they are made when one is.
var rewordings = sync.OnceValue(func() (all []rewording) {
	say := func(pattern string, say func(parts []string) string) {
		all = append(all, rewording{regexp.MustCompile(pattern), say})
	}
	add := func(pattern, words string) {
		say(pattern, func(parts []string) string { return strings.ReplaceAll(words, "$1", parts[len(parts)-1]) })
	}
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
	// It counts optional arguments too.
	add(`^expected at least \d+ arguments$`, "there are too few arguments")
	add(`^a map key must be `, "a key of an object is a name, a string, a number or an expression in parentheses")
	return all
})

// reworded is a message of expr's parser in words that its readers know.
func reworded(message string) string {
	for _, r := range rewordings() {
		if parts := r.of.FindStringSubmatch(message); parts != nil {
			return r.say(parts)
		}
	}
	return message
}
