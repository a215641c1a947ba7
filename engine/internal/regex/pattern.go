// Package regex compiles regular expressions within a bound on memory and time.
package regex

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Pattern is a regular expression, and how many units of the budget a search takes for each
// [MaxBytes] of a text.
type Pattern struct {
	*regexp.Regexp
	Price int
}

// MaxBytes is how many bytes of a text a pattern of one instruction looks at for a
// unit of the budget: in the worst case an instruction at a byte takes some ten nanoseconds.
const MaxBytes = 16

// MaxInstructions bounds the instructions of a pattern, and of all patterns of a schema together:
// they take memory as long as the schema is known. x{1000} has a thousand.
const MaxInstructions = 300_000

// ErrTooLarge is the error for patterns beyond [MaxInstructions].
var ErrTooLarge = fmt.Errorf("it takes too much: with what it repeats, it is more than %d characters", MaxInstructions)

// Compile compiles a pattern of package regexp. Its error may be [ErrTooLarge].
func Compile(text string) (*Pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if instructions(parsed) > MaxInstructions {
		return nil, ErrTooLarge
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(text)
	return &Pattern{compiled, len(program.Inst)}, err
}

// instructions is about how many a pattern will have, before it is written out.
func instructions(parsed *syntax.Regexp) int {
	n := 1
	if parsed.Op == syntax.OpLiteral {
		n = len(parsed.Rune)
	}
	for _, sub := range parsed.Sub {
		n = min(n+instructions(sub), MaxInstructions+1)
	}
	if parsed.Op == syntax.OpRepeat {
		n *= max(1, parsed.Min, parsed.Max)
	}
	return n
}
