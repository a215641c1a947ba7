package plan

import (
	"slices"
	"strings"
	"testing"

	"obelus/store"
)

// shownOrder is the order in which kinds are shown of some messages, each a kind, after the call that
// wrote it if one did: "state", "1.2 list", "① 1.2 list".
func shownOrder(t *testing.T, a Audience, texts ...string) string {
	t.Helper()
	var messages []*store.Message
	for i, text := range texts {
		m := &store.Message{Seq: int64(i) + 1, Type: store.TypeData}
		fields := strings.Fields(text)
		m.Kind = fields[len(fields)-1]
		for _, field := range fields[:len(fields)-1] {
			if strings.Contains(field, ".") {
				m.Call, m.Path = field, store.KindPath(m.Kind)
			} else {
				m.Instance = field
			}
		}
		m.Data = store.Some(map[string]any{"n": i})
		messages = append(messages, m)
	}
	kinds, _, err := a.Show(t.Context(), messages)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range kinds {
		name := k.Kind
		if k.Instance != "" {
			name += k.Instance
		}
		if k.Scoped {
			name += "*"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestShow_Order: kinds come in the order of their last writes; chance, which decides about the order
// of calls that run side by side, decides nothing about it.
func TestShow_Order(t *testing.T) {
	for _, test := range []struct {
		want     string
		audience Audience
		messages []string
	}{
		{"input state", Audience{}, []string{"input", "state"}},
		{"state input", Audience{}, []string{"input", "state", "input"}},
		{"input a b", Audience{}, []string{"input", "1.1 a", "1.2 b"}},
		{"input a b", Audience{}, []string{"input", "1.2 b", "1.1 a"}},
		{"input b a", Audience{}, []string{"input", "1.2 b", "1.1 a", "2.1 a"}},
		{"input b a", Audience{}, []string{"input", "1.1 a", "1.3 a", "1.2 b"}},
		{"a error b", Audience{}, []string{"1.1 a", "error", "2.1 b"}},
		{"b input* a*", Audience{Scopes: []store.Path{store.KindPath("a"), store.MustParsePath("†input.x")}}, []string{"input", "1.1 a", "1.2 b"}},
		{"a① a②", Audience{}, []string{"① 1.1 a", "② 1.2 a"}},
		{"g a①", Audience{Instance: "①"}, []string{"a", "g", "① 1.1 a", "② 1.2 a"}},
	} {
		if got := shownOrder(t, test.audience, test.messages...); got != test.want {
			t.Errorf("%v: %s, not %s", test.messages, got, test.want)
		}
	}
	if slices.Contains([]string{shownOrder(t, Audience{Only: true, Scopes: []store.Path{store.KindPath("a")}}, "input", "1.1 a")}, "input a*") {
		t.Error("a kind that no scope grants is shown")
	}
}
