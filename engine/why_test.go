package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// because is what an expression's value is made of, as text: each message by its
// seq, and in brackets what its call read, with the value.
func because(t *testing.T, log store.Log, name, ref, instance string) string {
	t.Helper()
	e, err := history.ParseRef(ref)
	if err != nil {
		t.Fatal(err)
	}
	why, err := history.Explain(t.Context(), journal.In(log, name), e, 0, instance)
	if err != nil {
		t.Fatal(err)
	}
	var tell func(why history.Why) string
	tell = func(why history.Why) string {
		var parts []string
		for _, o := range why.From {
			text := fmt.Sprint(o.Seq)
			for _, read := range o.Reads {
				text += fmt.Sprintf("[%s=%s: %s]", read.Ref, store.EncodeJSON(read.Value), tell(read))
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, " ")
	}
	return tell(*why)
}

// TestWhy_Reads: of a choice what was taken, for an instance what is
// global and newer than its own, and for a call that ran again what it read.
func TestWhy_Reads(t *testing.T) {
	log := memory.New()
	if _, err := engine.Append(t.Context(), log, "c", messages(t, `[{"type": "state", "g": 0}, {"type": "state", "_instance": "i", "own": 1}]`)); err != nil {
		t.Fatal(err)
	}
	r, _, _ := forked(t, log, `[
		{"_tool": "value", "value": 1, "_outputPath": "†state.g"},
		{"_tool": "value", "value": "†state", "_instance": "i", "_outputPath": "†out.i"},
		{"_tool": "value", "value": "x", "_outputPath": "†x.x"},
		{"_tool": "value", "value": "a", "_outputPath": "†x.a"},
		{"_tool": "value", "value": ["†x.a", "†x.x"], "_outputPath": "†out.b"},
		{"_tool": "value", "value": "y", "_outputPath": "†x.x"}]`)
	records, err := journal.In(log, "c").Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := records[1].Reads["†state"]; got != 4 {
		t.Errorf("it read up to %d", got)
	}
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.4"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range [][4]string{
		{"c", "†(†state.g || †x.a)", "", "4"},
		{"c", "†out.i", "i", `5[†state={"g":1,"own":1}: 2 4 1]`},
		{"f", "†out.b", "", `11[†x.a="a": 10][†x.x="x": 6]`},
	} {
		if got := because(t, log, test[0], test[1], test[2]); got != test[3] {
			t.Errorf("%s of %s: %s, not %s", test[1], test[0], got, test[3])
		}
	}
}

// TestWhy_MissingInDelegate: a message that a value is made of need not hold
// the path that is asked for: it is told as far as it goes.
func TestWhy_MissingInDelegate(t *testing.T) {
	log := memory.New()
	for _, text := range []string{
		`{"type": "state", "l": [0]}`,
		`{"type": "data", "kind": "state", "data": {"l": 5}, "path": "†state.l", "_call": {"_tool": "t"}, "_outputMethod": "push"}`,
	} {
		if _, err := engine.Append(t.Context(), log, "c", messages(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := history.ParseRef("†state.l[1]")
	if err != nil {
		t.Fatal(err)
	}
	why, err := history.Explain(t.Context(), journal.In(log, "c"), e, 0, "")
	if err != nil || len(why.From) != 2 {
		t.Fatalf("%+v, %v", why, err)
	}
	if o := why.From[1]; o.Path != "†state.l" || string(store.EncodeJSON(o.Data)) != "[0]" {
		t.Errorf("%s = %s", o.Path, store.EncodeJSON(o.Data))
	}
}

// TestWhy_Misfit: a row that is read as onto a missing value is marked
// (protocol §3).
func TestWhy_Misfit(t *testing.T) {
	log := memory.New()
	for _, text := range []string{
		`{"type": "state", "l": [1]}`,
		`{"type": "state", "l": 2, "_instance": "i", "_call": {"_tool": "t", "_outputPath": "†state.l"}, "_outputMethod": "push"}`,
		`{"type": "state", "l": "text"}`,
	} {
		if _, err := engine.Append(t.Context(), log, "c", messages(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := history.ParseRef("†state.l")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int64]string{2: "2 1", 3: "2 misfit 3"} {
		why, err := history.Explain(t.Context(), journal.In(log, "c"), e, at, "i")
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, o := range why.From {
			parts = append(parts, fmt.Sprint(o.Seq))
			if o.Misfit {
				parts = append(parts, "misfit")
			}
		}
		if got := strings.Join(parts, " "); got != want {
			t.Errorf("at %d: %s, not %s", at, got, want)
		}
	}
}

// TestWhy_Correction: what a person has put something else in the place of, as a
// whole, was not read by the call.
func TestWhy_Correction(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	s := start(t, `[{"_tool": "value", "value": "†state.x", "other": "†state.y", "both": ["†state.x", "†state.z"], "_outputPath": "†out.a"},
		{"_tool": "value", "value": "†state.x", "other": "†state.y", "_scopes": ["state.x"], "_outputPath": "†out.b"},
		{"_tool": "value", "value": "†state.x", "_outputPath": "†out.c"},
		{"_tool": "value", "value": {"x": "†state.x", "y": "†state.y"}, "_outputPath": "†out.d"},
		{"_tool": "value", "value": "†state.o", "_outputPath": "†out.e"}]`)
	s.Request.Context, s.Approve = messages(t, `{"type": "state", "x": 1, "y": 2, "z": 3, "o": {"a": 4, "b": 7}}`), plan.Policy{Always: true}
	r.Parallel = 1
	if _, err := r.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for i, arguments := range []map[string]any{{"value": 5, "other": 2, "both": 3}, {"value": 5, "other": 2}, {"value": 5}, {"value": map[string]any{"x": 5, "y": 2}}, {"value": map[string]any{"a": 5, "b": 7}}} {
		if err := r.Decide(t.Context(), journal.Decision{Context: "c", Call: fmt.Sprint("1.", i+1), Arguments: arguments}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{"†out.a": "3[†state.y=2: 1]", "†out.b": "4[†state.x=1: 1][†state.y=2: 1]", "†out.c": "5", "†out.d": "6[†state.x=1: 1][†state.y=2: 1]", "†out.e": `7[†state.o={"a":4,"b":7}: 1]`} {
		if got := because(t, log, "c", ref, ""); got != want {
			t.Errorf("%s: %s, not %s", ref, got, want)
		}
	}
}

// TestWhy_ReadByMany: what one call wrote is told once, however many read a part of it.
func TestWhy_ReadByMany(t *testing.T) {
	log := memory.New()
	const n = 400
	rows := strings.TrimSuffix(strings.Repeat(`{"id": 1, "name": "somebody"}, `, n), ", ")
	calls := strings.TrimSuffix(repeated(n, `{"_tool": "value", "value": "†state.rows[#].id", "_outputPath": "†state.ids.r#"}`), "]")
	s := start(t, calls+`, {"_tool": "value", "value": [`+rows+`], "_outputPath": "†state.rows"}, {"_tool": "value", "value": "†state.ids", "_outputPath": "†state.all"}]`)
	if outcome, err := newRunner(log, map[string]activity{"value": value}).Run(t.Context(), s); err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	e, err := history.ParseRef("state.all")
	if err != nil {
		t.Fatal(err)
	}
	why, err := history.Explain(t.Context(), journal.In(log, s.Context), e, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(why)
	if err != nil {
		t.Fatal(err)
	}
	if told := strings.Count(string(text), "somebody"); told != n {
		t.Errorf("%d rows are told, of %d", told, n)
	}
	if len(text) > 1000*n {
		t.Errorf("it takes %d bytes for %d calls", len(text), n)
	}
}

// TestParseRef holds that a path without its dagger is one, also where a key has a dagger in it, and
// that other texts with daggers are expressions.
func TestParseRef(t *testing.T) {
	for text, want := range map[string]string{
		"state.a": "†state.a", `state["a†b"]`: `†state["a†b"]`, "†state.a": "†state.a", "len(†state.a) > 1": "†(len(†state.a) > 1)",
	} {
		e, err := history.ParseRef(text)
		if err != nil || e.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, e, err, want)
		}
	}
	for _, text := range []string{"state a", "len(state.a)", "†"} {
		if e, err := history.ParseRef(text); err == nil {
			t.Errorf("%s: %v", text, e)
		}
	}
}
