package model

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/store"
)

// cutProposal is a question for a plan about a value, with a tool that takes any.
func cutProposal(v any) plan.Proposal {
	return plan.Proposal{
		Tick: 1, Mode: plan.ModeEager, Kinds: []plan.Shown{{Kind: "state", Value: store.Some(v)}, {Kind: "other", Value: store.Some("†small")}},
		Tools: []plan.Offer{{Name: "use", Schema: map[string]any{"properties": map[string]any{"of": map[string]any{}}}}},
	}
}

func listOf(n int, v any) []any { return slices.Repeat([]any{v}, n) }

// TestPlanRequest_CutsTheLargest holds that nothing is cut from a prompt that fits, and else the largest
// values, from their end, which the request lists.
func TestPlanRequest_CutsTheLargest(t *testing.T) {
	deep := any("leaf")
	for range 7 {
		deep = map[string]any{"in": []any{deep, deep, deep}}
	}
	members := map[string]any{}
	for i := range 3000 {
		members[fmt.Sprintf("m%04d", i)] = i
	}
	long := strings.Repeat("x", 20_000)
	for _, test := range []struct {
		name  string
		value any
		cut   string
		has   []string
	}{
		{"a text", map[string]any{"a": long, "b": "short"}, "†state.a", []string{"xxx… (19 KB: refer to it as †state.a)", `"b":"short"`}},
		{"texts", map[string]any{"a": long, "b": []any{long, "short"}}, "†state.a †state.b.0", []string{`xxx… (19 KB: refer to it as †state.b.0)","short"]`}},
		{"a list", map[string]any{"a": listOf(20_000, 7), "b": "short"}, "†state.a", []string{`"… (1`, `more: refer to it as †state.a)"]`}},
		{"an object", map[string]any{"a": members, "b": "short"}, "†state.a", []string{`more: refer to it as †state.a)"`, `"m0000":0`}},
		{"deep ones", deep, "", []string{"… (more within: refer to it as †state.in.0.in"}},
		{"nothing", map[string]any{"a": strings.Repeat("x", 2500), "b": listOf(21, 7)}, "", nil},
	} {
		m := New(Config{Name: "m", Window: 6000, Params: Params{MaxTokens: 1000}}, nil)
		r := m.PlanRequest(cutProposal(test.value))
		text := strings.Join(r.Blocks, "\n")
		if got := strings.Join(r.Cut, " "); got != test.cut && test.name != "deep ones" {
			t.Errorf("%s: %s is cut, want %q", test.name, got, test.cut)
		}
		for _, part := range test.has {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the prompt has no %q:\n%.3000s", test.name, part, text)
			}
		}
		if said := strings.Contains(r.System, "is cut where it says"); r.Tokens() > 5000 || said != (len(test.has) > 0) {
			t.Errorf("%s: it has %d tokens, and says that something is cut: %v", test.name, r.Tokens(), said)
		}
		if whole := New(Config{Name: "m"}, nil).PlanRequest(cutProposal(test.value)); len(whole.Cut) > 0 || strings.Contains(strings.Join(whole.Blocks, "\n"), "refer to it as") {
			t.Errorf("%s: it is cut though there is no bound", test.name)
		}
	}
}

// TestPlanRequest_CutIsNoted holds, for random values and windows, that a prompt is within its bound, or
// is an error, and that each value that it does not show whole is listed, or within one that is.
func TestPlanRequest_CutIsNoted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	value = func(depth int) any {
		switch kind := random.IntN(5); {
		case kind < 2 || depth > 4:
			return strings.Repeat("é†", random.IntN(1+random.IntN(3000)))
		case kind < 4:
			list := make([]any, random.IntN(1+60>>(2*depth)))
			for i := range list {
				list[i] = value(depth + 1)
			}
			return list
		}
		object := map[string]any{}
		for range random.IntN(1 + 20>>depth) {
			object[fmt.Sprintf("k%d", random.IntN(100))] = value(depth + 1)
		}
		return object
	}
	cut := 0
	for range 100 {
		v := value(0)
		m := New(Config{Name: "m", Window: 3000 + random.IntN(100_000), Params: Params{MaxTokens: 500}}, nil)
		p := cutProposal(v)
		r := m.PlanRequest(p)
		if err := m.fitsWindow(r, p.Kinds, true); err != nil {
			continue
		}
		if r.Tokens() > m.bound() {
			t.Fatalf("%d tokens, and the bound is %d", r.Tokens(), m.bound())
		}
		if len(r.Cut) > 0 {
			cut++
		}
		shown, _ := shownAt(r, store.KindPath("state"), "")
		var check func(v, shown any, path store.Path)
		check = func(v, shown any, path store.Path) {
			if slices.Contains(r.Cut, path.String()) || reflect.DeepEqual(plain(shown), plain(plan.Literal(v))) {
				return
			}
			switch v := v.(type) {
			case []any:
				other, _ := shown.([]any)
				if len(other) == len(v) {
					for i := range v {
						check(v[i], other[i], path.Child(fmt.Sprint(i)))
					}
					return
				}
			case map[string]any:
				other, _ := shown.(map[string]any)
				if len(other) == len(v) {
					for name := range v {
						check(v[name], other[name], path.Child(name))
					}
					return
				}
			}
			t.Fatalf("%s is not shown whole, and the request does not say so: %s", path, jsonText(shown))
		}
		check(v, shown, store.KindPath("state"))
	}
	if cut < 20 {
		t.Errorf("only %d of 100 were cut", cut)
	}
}

// TestPlanRequest_NoWayToTheWhole holds that nothing is cut where no tool takes a reference to the whole:
// the request is refused before it is sent.
func TestPlanRequest_NoWayToTheWhole(t *testing.T) {
	m := New(Config{Name: "m", Window: 3000, Params: Params{MaxTokens: 500}}, nil)
	p := cutProposal(strings.Repeat("x", 20_000))
	p.Tools = []plan.Offer{{Name: "ping", Schema: map[string]any{"properties": map[string]any{}, "additionalProperties": false}}}
	_, err := m.Propose(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "the largest kinds are †state with 19 KB") {
		t.Errorf("got %v", err)
	}
}

// TestAnswerAll_ShowsWhatIsReadWhole holds that what any call of a group reads is whole, and that a
// group that does not fit then is asked one by one: only the call that reads too much fails.
func TestAnswerAll_ShowsWhatIsReadWhole(t *testing.T) {
	kinds := []plan.Shown{{Kind: "a", Value: store.Some(strings.Repeat("x", 9000))}, {Kind: "b", Value: store.Some("small")}}
	ask := askerFunc(func(r *Request, _ *plan.Meter) (*Answer, error) {
		if slices.Contains(r.Cut, "†a") && slices.Contains(r.Calls(), "1.1") {
			t.Error("the call that reads †a is shown a part of it")
		}
		return &Answer{Value: store.Some(map[string]any{"1.1": "x", "1.2": "y"})}, nil
	})
	questions := []plan.Question{
		{ID: "1.1", Kinds: kinds, Call: map[string]any{"_tool": "t"}, Scopes: []store.Path{store.KindPath("a")}},
		{ID: "1.2", Kinds: kinds, Call: map[string]any{"_tool": "t"}},
	}
	for window, fails := range map[int]bool{3000: true, 9000: false} {
		replies := New(Config{Name: "m", Window: window, Params: Params{MaxTokens: 500}}, ask).AnswerAll(t.Context(), questions)
		if failed := replies[0].Err != nil; failed != fails || replies[1].Err != nil || replies[1].Result.Value != "y" {
			t.Errorf("window %d: %+v", window, replies)
		}
		if cut := slices.Contains(replies[1].Cut, "†a"); cut != fails {
			t.Errorf("window %d: the other call is shown a part: %v", window, cut)
		}
	}
}
