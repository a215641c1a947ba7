package expr_test

import (
	"testing"

	"obelus/engine/expr"
)

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
		if got, err := expr.WithDaggers(text); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10", `"a"`, "state.a ||", "state.a + 1", "|| a", "a b", "††a", "a-b"} {
		if got, err := expr.WithDaggers(text); err == nil {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
