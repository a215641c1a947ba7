package cmd

import (
	"obelus/cmd/internal/exit"

	"errors"
	"strconv"
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
		return nil, exit.Usagef("%s: a quote is not closed", line)
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
// keys in quotes, and a whole word may stand in them. It may be given more than once.
type wordList []string

func (l *wordList) String() string { return strings.Join(*l, ",") }
func (l *wordList) Type() string   { return "list of words" }

func (l *wordList) Set(text string) error {
	var words []string
	begin, inQuotes, escaped := 0, false, false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case inQuotes && r == '\\':
			escaped = true
		case r == '"':
			inQuotes = !inQuotes
		case r == ',' && !inQuotes:
			words, begin = append(words, text[begin:i]), i+1
		}
	}
	for _, word := range append(words, text[begin:]) {
		if strings.HasPrefix(word, `"`) {
			if whole, err := strconv.Unquote(word); err == nil {
				word = whole
			}
		}
		if word == "" {
			return errors.New("a word of the list is empty")
		}
		*l = append(*l, word)
	}
	return nil
}
