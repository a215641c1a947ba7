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
		`"\ud800`:                    "not JSON: it ends too early",
		`"\\ud800"`:                  "",
		`"\\\\\ud83d\uDE00\\"`:       "",
		`["\ud83d\ude00", "\uFFFD", "\n\"\ud83d\ude00"]`: "",
	} {
		_, err := store.DecodeJSON([]byte(text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}
