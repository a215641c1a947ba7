package visible

import "strings"

// Command returns a command line of these words that can be pasted into a shell, whoever wrote
// them.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Word(word)
	}
	return strings.Join(quoted, " ")
}

// Word returns a word as a shell takes it, in quotes where that is needed.
func Word(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-"
	isSpecial := func(r rune) bool { return !strings.ContainsRune(plain, r) }
	if word != "" && !strings.ContainsFunc(word, isSpecial) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
