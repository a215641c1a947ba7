package store_test

import (
	"testing"

	"obelus/store"
)

// TestPath_SingleQuotes holds that a key in single quotes is refused with what to write for it
// (protocol §2).
func TestPath_SingleQuotes(t *testing.T) {
	for text, want := range map[string]string{
		`†state['a b']`:        `bad path "†state['a b']": write ["a b"] for the key in single quotes at column 8`,
		`†état.x['']`:          `bad path "†état.x['']": write [""] for the key in single quotes at column 9`,
		`†s['it\'s "x"'].b`:    `bad path "†s['it\\'s \"x\"'].b": write ["it's \"x\""] for the key in single quotes at column 4`,
		`†s['\\']`:             `bad path "†s['\\\\']": write ["\\"] for the key in single quotes at column 4`,
		`†s['\"\u2020']`:       `bad path "†s['\\\"\\u2020']": write ["\"†"] for the key in single quotes at column 4`,
		`†s['\x41']`:           `bad path "†s['\\x41']": a quoted key is not a JSON string at column 4`,
		`†s['a`:                `bad path "†s['a": a quoted key is not closed at column 4`,
		`†s['a" + "b'.length]`: `bad path "†s['a\" + \"b'.length]": expected ] after the key at column 13`,
	} {
		if _, err := store.ParsePath(text); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}
