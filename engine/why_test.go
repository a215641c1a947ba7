package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/store"
)

// because is what an expression's value is made of, as text: each message by its
// seq, and in brackets what its call read, with the value.
func because(t *testing.T, log store.Log, name, ref, instance string) string {
	t.Helper()
	e, err := engine.ParseRef(ref)
	if err != nil {
		t.Fatal(err)
	}
	why, err := engine.Explain(t.Context(), log, name, e, 0, instance)
	if err != nil {
		t.Fatal(err)
	}
	var tell func(why engine.Why) string
	tell = func(why engine.Why) string {
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

// TestWhyTellsWhatWasRead: of a choice what was taken, for an instance what is
// global and newer than its own, and for a call that ran again what it read.
func TestWhyTellsWhatWasRead(t *testing.T) {
	log := store.NewMemory()
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
	records, err := engine.Records(t.Context(), log, "c")
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

// TestWhyOfWhatIsMissingThere: a message that a value is made of need not hold
// the path that is asked for: it is told as far as it goes.
func TestWhyOfWhatIsMissingThere(t *testing.T) {
	log := store.NewMemory()
	for _, text := range []string{
		`{"type": "state", "l": [0]}`,
		`{"type": "data", "kind": "state", "data": {"l": 5}, "path": "†state.l", "_call": {"_tool": "t"}, "_outputMethod": "push"}`,
	} {
		if _, err := engine.Append(t.Context(), log, "c", messages(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.ParseRef("†state.l[1]")
	if err != nil {
		t.Fatal(err)
	}
	why, err := engine.Explain(t.Context(), log, "c", e, 0, "")
	if err != nil || len(why.From) != 2 {
		t.Fatalf("%+v, %v", why, err)
	}
	if o := why.From[1]; o.Path != "†state.l" || string(store.EncodeJSON(o.Data)) != "[0]" {
		t.Errorf("%s = %s", o.Path, store.EncodeJSON(o.Data))
	}
}
