package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"obelus/store"
	"obelus/store/suites"
)

func TestPlainJSON(t *testing.T) {
	for _, test := range []struct{ name, given, want string }{
		{"nothing to do", `{"a": [1, 2]}`, `{"a": [1, 2]}`},
		{"line comment", "// é\n{\"a\": 1} // end", "     \n{\"a\": 1}       "},
		{"line comment before CRLF", "[1 // x\r\n]", "[1     \r\n]"},
		{"block comment", "[1, /* 2,\n3 */ 4]", "[1,      \n     4]"},
		{"comment between tokens", `{"a"/*b*/:/**/1}`, `{"a"     :    1}`},
		{"comma after the last", "[1,\n]", "[1 \n]"},
		{"comma, comment, end", `{"a": [1,], /* x */}`, `{"a": [1 ]         }`},
		{"comment within a text", `["// no", "/* no */", "\"//", "a,]"]`, `["// no", "/* no */", "\"//", "a,]"]`},
		{"one message a line", "{\"type\":\"text\",\"text\":\"a\",} // first\n{\"type\":\"text\",\"text\":\"b\"}", "{\"type\":\"text\",\"text\":\"a\" }         \n{\"type\":\"text\",\"text\":\"b\"}"},
		{"a comma alone", `[,]`, `[,]`},
		{"two commas", `[1,,]`, `[1,,]`},
		{"a comma after a colon", `{"a":,}`, `{"a":,}`},
		{"an open comment", `[1, /* ]`, `[1, /* ]`},
		{"a lone slash", `[1 / 2]`, `[1 / 2]`},
		{"a slash at the end", `[1]/`, `[1]/`},
		{"an open text", `["a//,]`, `["a//,]`},
		{"an escape at the end", `["a\`, `["a\`},
		{"empty", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			given := []byte(test.given)
			got := store.PlainJSON(given)
			if string(got) != test.want {
				t.Errorf("PlainJSON = %q, want %q", got, test.want)
			}
			if string(given) != test.given {
				t.Errorf("it changed the text that it was given: %q", given)
			}
		})
	}
	deep := strings.Repeat("[", 2_000_000) + strings.Repeat(",]", 2_000_000)
	if got := store.PlainJSON([]byte(deep)); len(got) != len(deep) {
		t.Errorf("a deep text of %d bytes became one of %d", len(deep), len(got))
	}
}

// TestPlainJSON_KeepsPlaces reads texts with comments and a fault behind them: the error names the
// place of the fault in the text as it was given.
func TestPlainJSON_KeepsPlaces(t *testing.T) {
	_, err := store.DecodeGiven(store.PlainJSON([]byte("// a\n[1, /* b\n*/ 2,\n  nope,\n]")), store.MaxDepth)
	if err == nil || !strings.Contains(err.Error(), "line 4 column 4") {
		t.Errorf("error %v, want one at line 4 column 4", err)
	}
}

// TestPlainJSON_Suite reads the JSON parsing test suite as files of commands are read. The texts
// that it wants refused are refused, except for those with comments or a comma after the last
// element that are named here.
func TestPlainJSON_Suite(t *testing.T) {
	allowed := []string{
		"n_array_extra_comma.json", "n_array_number_and_comma.json", "n_object_trailing_comma.json", "n_object_trailing_comment.json",
		"n_object_trailing_comment_slash_open.json", "n_structure_object_with_comment.json",
	}
	files, err := filepath.Glob(filepath.Join(suites.Dir(t, "json"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, wrong := store.DecodeGiven(store.PlainJSON(text), store.MaxDepth)
		switch name := filepath.Base(file); {
		case name[0] == 'n' && wrong == nil:
			read = append(read, name)
		case name[0] == 'y' && !bytes.Equal(store.PlainJSON(text), text):
			t.Errorf("%s is changed", name)
		}
	}
	if !slices.Equal(read, allowed) {
		t.Errorf("texts that are read against the suite:\n%q, want\n%q", read, allowed)
	}
}
