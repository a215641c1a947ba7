package term

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"obelus/cmd/internal/human"
	"obelus/engine/journal"
	"obelus/engine/plan"
)

// TestFit_CutsTheWidest: what is too wide for a terminal is cut where it is widest.
func TestFit_CutsTheWidest(t *testing.T) {
	rows := [][]string{{"call", "data", "error"}, {"1.2", strings.Repeat("x", 50), strings.Repeat("é", 30)}}
	human.Fit(rows, 40)
	if got := strings.Join(rows[1], "  "); got != "1.2  "+strings.Repeat("x", 15)+"…  "+strings.Repeat("é", 15)+"…" {
		t.Errorf("%q", got)
	}
	human.Fit(rows, 5) // never to nothing
	if got := rows[1][1]; got != "xxxxxxx…" {
		t.Errorf("%q", got)
	}
	var shown strings.Builder
	(&Terminal{Err: &shown}).Error(errors.New("too\x1b[2J much\n  below"))
	if got := human.PrintableText("\x1b[31mred\x1b[0m \x1b[2J\r\nmore"); got != "\x1b[31mred\x1b[0m \ufffd[2J\nmore" {
		t.Errorf("%q", got)
	}
	if got := shown.String(); got != "obelus: too\ufffd[2J much\n  below\n" {
		t.Errorf("%q", got)
	}
	shown.Reset()
	refused := &plan.PlanError{Problems: []plan.Problem{{File: "p.lua", Message: "one"}, {File: "p.lua", Message: "two:\n\n-a\n+b\r\n"}}}
	(&Terminal{Err: &shown}).Error(errors.Join(refused, fmt.Errorf("and %w, %w", errors.New("three"), errors.New("four"))))
	if got := shown.String(); got != "obelus: p.lua: one\nobelus: p.lua: two:\n\n-a\n+b\nobelus: and three, four\n" {
		t.Errorf("%q", got)
	}
	shown.Reset()
	(&Terminal{Err: &shown}).Error(fmt.Errorf("plans/a.lua: %w", errors.Join(errors.New("one"), fmt.Errorf("two: %w", errors.Join(errors.New("three"), errors.New("four"))))))
	if got := shown.String(); got != "obelus: plans/a.lua: one\nobelus: two: three\nobelus: four\n" {
		t.Errorf("%q", got)
	}
	if got := human.Printable("a\tb\x1b[2Jc"); got != "a b\ufffd[2Jc" {
		t.Errorf("%q", got)
	}
}

// TestFit_WideCharacters holds that columns stand below each other, and end at the
// terminal's edge, where characters take two columns or none.
func TestFit_WideCharacters(t *testing.T) {
	rows := [][]string{{"instance", "value", "n"}, {"订单一号", "👍 e\u0301", "1"}, {"b", strings.Repeat("中", 30), "2"}}
	var shown strings.Builder
	if err := (&Terminal{Out: &shown}).Table(rows[0], rows[1:2]); err != nil {
		t.Fatal(err)
	}
	if got, want := shown.String(), "instance  value  n\n订单一号  👍 e\u0301   1\n"; got != want {
		t.Errorf("\n%swant\n%s", got, want)
	}
	human.Fit(rows, 40)
	if got, want := rows[2][1], strings.Repeat("中", 13)+"…"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if got := human.Cut("中文字符", 4); got != "中…" {
		t.Errorf("%s", got)
	}
}

// TestNoticef_EscapesOthers: nothing that a message of others has steers a terminal or colours it,
// whatever its type and wherever the message goes; the program's own colours stay.
func TestNoticef_EscapesOthers(t *testing.T) {
	type named string
	const hostile = "a\x1b[8m\x1b[2Jb\u202ec"
	r := rand.New(rand.NewPCG(1, 0))
	for range 500 {
		var shown strings.Builder
		term := &Terminal{Err: &shown, colour: r.IntN(2) == 0}
		record := journal.Record{
			Call: "1.1", Tool: hostile, Instance: hostile, Reason: hostile, Writes: []string{hostile}, WaitingOn: []string{hostile},
			Status: []journal.Status{journal.Failed, journal.Waiting, journal.Skipped, journal.Held, journal.Running, journal.InDoubt}[r.IntN(6)],
			Error:  plan.Values{"message": hostile, "code": hostile}, Handled: plan.Values{"message": hostile, "code": hostile},
		}
		arg := []any{hostile, named(hostile), errors.New(hostile), []string{hostile}, term.Paint(human.Red, hostile), (&Progress{term: term}).describe(record)}[r.IntN(6)]
		term.Noticef("%v", arg)
		for _, bad := range []string{"\x1b[8m", "\x1b[2J", "\u202e"} {
			if strings.Contains(shown.String(), bad) {
				t.Fatalf("%T has %q: %q", arg, bad, shown.String())
			}
		}
		if !term.colour && strings.Contains(shown.String(), "\x1b") {
			t.Fatalf("%T has a colour: %q", arg, shown.String())
		}
	}
	if got := human.PrintableText("\x1b[8mhidden\nnot"); got != "\x1b[8mhidden\x1b[0m\nnot" {
		t.Errorf("a colour goes on: %q", got)
	}
}
