package cli

import (
	"obelus/cmd/internal/exit"

	"strings"
)

// Split splits a line at blanks, as a shell does: quotes keep blanks, and a backslash keeps the
// next character.
func Split(line string) (words []string, err error) {
	var word strings.Builder
	begun, quote := false, byte(0)
	escaped := false
	for i := range len(line) {
		c := line[i]
		switch {
		case escaped:
			word.WriteByte(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, exit.Usagef("%s: a quote is not closed", line)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
