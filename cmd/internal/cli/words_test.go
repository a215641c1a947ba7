package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit_Quotes(t *testing.T) {
	for line, want := range map[string][]string{
		"plans/a.lua a=b  c:=1":    {"plans/a.lua", "a=b", "c:=1"},
		`x name="Ada Lovelace" e=`: {"x", "name=Ada Lovelace", "e="},
		`x '{"a": "b\n"}' ""`:      {"x", `{"a": "b\n"}`, ""},
		`x a\ b "\"" '†'`:          {"x", "a b", `"`, "†"},
	} {
		got, err := Split(line)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(line, err, diff)
		}
	}
	for _, line := range []string{`x "a`, `x 'a`, `x a\`} {
		if words, err := Split(line); err == nil {
			t.Error(line, words)
		}
	}
}
