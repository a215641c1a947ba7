package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
)

func TestLiteral_EscapesTexts(t *testing.T) {
	shared := map[string]any{"n": json.Number("1"), "list": []any{"a", nil, true}}
	given := map[string]any{
		"†key": "†a", "plain": "a", "twice": "††a", "within": "a †b",
		"list": []any{"†b", map[string]any{"c": "† me"}, 5.5}, "shared": shared, "go": []string{"†d"}, "empty": []any{},
	}
	want := map[string]any{
		"†key": "††a", "plain": "a", "twice": "†††a", "within": "a †b",
		"list": []any{"††b", map[string]any{"c": "†† me"}, 5.5}, "shared": shared, "go": []any{"††d"}, "empty": []any{},
	}
	if diff := cmp.Diff(want, engine.Literal(given)); diff != "" {
		t.Error(diff)
	}
	if given["†key"] != "†a" || given["list"].([]any)[0] != "†b" {
		t.Error("the given value has changed")
	}
}

func TestWithDaggers_References(t *testing.T) {
	for text, want := range map[string]string{
		"state.a":                    "†state.a",
		"state.a || input.b":         "†state.a || †input.b",
		"†state.a || input.b":        "†state.a || †input.b",
		`state["first-name"].b && c`: `†state["first-name"].b && †c`,
		"(a.x || a.y) && a.log":      "†(†a.x || †a.y) && †a.log",
		`input.n || 10 || "a.b"`:     `†input.n || 10 || "a.b"`,
		"state.on || true":           "†state.on || true",
		" state.truely ":             "†state.truely",
	} {
		if got, err := engine.WithDaggers(text); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10", `"a"`, "state.a ||", "state.a + 1", "|| a", "a b", "††a", "a-b"} {
		if got, err := engine.WithDaggers(text); err == nil {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
