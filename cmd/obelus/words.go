package main

import (
	"fmt"
	"strings"
	"unicode"
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

// quoted is a word as a shell has to be given it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./:=,@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// wordList is a flag's list, split at commas that stand in no quotes: a path may have
// keys in quotes. It may be given more than once.
type wordList []string

func (l *wordList) String() string { return strings.Join(*l, ",") }
func (l *wordList) Type() string   { return "list" }

func (l *wordList) Set(text string) error {
	inQuotes, escaped := false, false
	words := strings.FieldsFunc(text, func(r rune) bool {
		switch {
		case escaped:
			escaped = false
		case inQuotes && r == '\\':
			escaped = true
		case r == '"':
			inQuotes = !inQuotes
		}
		return r == ',' && !inQuotes
	})
	*l = append(*l, words...)
	return nil
}
