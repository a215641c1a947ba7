package main

import (
	"fmt"
	"strings"
)

// splitWords splits a line at blanks, as a shell does: quotes keep them, and a
// backslash keeps what follows it.
func splitWords(line string) (words []string, err error) {
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
		return nil, &usageError{fmt.Sprintf("%s: a quote is not closed", line)}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
