package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/engine/plan"
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
	if diff := cmp.Diff(want, plan.Literal(given)); diff != "" {
		t.Error(diff)
	}
	if given["†key"] != "†a" || given["list"].([]any)[0] != "†b" {
		t.Error("the given value has changed")
	}
}
