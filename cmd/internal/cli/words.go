package cli

import (
	"obelus/cmd/internal/exit"

	"strings"
	"unicode"
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

// Quote returns a word as a shell takes it.
func Quote(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./:=,@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
