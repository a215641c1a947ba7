package store_test

import (
	"testing"

	"obelus/store"
)

// TestHalfCharacters: an escape that stands for half a character alone is refused as
// invalid UTF-8 is, and not replaced.
func TestHalfCharacters(t *testing.T) {
	for text, want := range map[string]string{
		`"x\ud800y"`:                 `\ud800 is half a character: the other half is not there, at line 1 column 3`,
		"{\"a\": 1,\n\"\\uDC00\":2}": `\uDC00 is half a character: the other half is not there, at line 2 column 2`,
		`"\ud800\u0041"`:             `\ud800 is half a character: the other half is not there, at line 1 column 2`,
		`"\ud83d\ude00\ude00"`:       `\ude00 is half a character: the other half is not there, at line 1 column 14`,
		`"\ud83d\ud83d\ude00"`:       `\ud83d is half a character: the other half is not there, at line 1 column 2`,
		`"\ud800`:                    "not JSON: it ends too early, at line 1 column 8",
		`"\\ud800"`:                  "",
		`"\\\\\ud83d\uDE00\\"`:       "",
		`["\ud83d\ude00", "\uFFFD", "\n\"\ud83d\ude00"]`: "",
	} {
		decodes(t, text, want)
	}
}

// TestSyntaxErrors: an error says what JSON has in place of what people and models
// write, and names the character that it found, whole.
func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[1, // one\n2]":      "not JSON: JSON has no comments, at line 1 column 5",
		"[1 /* one */]":       "not JSON: JSON has no comments, at line 1 column 4",
		"{\"a\": 1}\n// end":  "more text after the JSON value, at line 2 column 1",
		"```json\n[1]\n```":   "not JSON: JSON stands alone, without ``` around it, at line 1 column 1",
		`{'a': 1}`:            `not JSON: strings stand in straight double quotes ("), not in ', at line 1 column 2`,
		`{“a”: 1}`:            `not JSON: strings stand in straight double quotes ("), not in “, at line 1 column 2`,
		`{"a": ‘1’}`:          `not JSON: strings stand in straight double quotes ("), not in ‘, at line 1 column 7`,
		"{\"a\": 1,\n}":       "not JSON: there is a comma before the }, at line 2 column 1",
		`[1, 2, ]`:            "not JSON: there is a comma before the ], at line 1 column 8",
		`[, 2]`:               `not JSON: invalid character ',' looking for beginning of value, at line 1 column 2`,
		`[1}`:                 `not JSON: invalid character '}' after array element, at line 1 column 3`,
		`{"a": †state.a}`:     `not JSON: invalid character '†' looking for beginning of value, at line 1 column 7`,
		`{"a" 1}`:             `not JSON: invalid character '1' after object key, at line 1 column 6`,
		"[\"a\nb\"]":          `not JSON: invalid character '\n' in string literal, at line 1 column 4`,
		`[nul]`:               `not JSON: invalid character ']' in literal null (expecting 'l'), at line 1 column 5`,
		`[tru e]`:             `not JSON: invalid character ' ' in literal true (expecting 'e'), at line 1 column 5`,
		`["it's", "“so”", 1]`: "",
	} {
		decodes(t, text, want)
	}
}

// decodes holds the error of decoding a text to what it should be.
func decodes(t *testing.T, text, want string) {
	t.Helper()
	_, err := store.DecodeJSON([]byte(text))
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s: %s, not %s", text, got, want)
	}
}
