package model

import (
	"fmt"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/store"
)

// TestLedger_IsBounded: the newest calls are shown whole, older ones in short, and the oldest are left
// out, by how much room there is.
func TestLedger_IsBounded(t *testing.T) {
	var calls []plan.PastCall
	for i := range 200 {
		calls = append(calls, plan.PastCall{
			Call: fmt.Sprintf("%d.1", i+1), Tick: i + 1, Tool: "note", Status: "done", Wrote: []string{"†state.a"}, Value: store.Some(strings.Repeat("v", 500)),
			Issued: map[string]any{"_tool": "note", "_outputPath": "†state.a", "text": strings.Repeat("x", 300) + "end"},
		})
	}
	for most, want := range map[int][2]int{8000: {8, 26}, 1 << 20: {200, 200}, 400: {0, 1}} {
		text := ledgerBlock(calls, most)
		lines := strings.Split(text, "\n")[2:]
		whole, listed := 0, 0
		for _, line := range lines {
			if strings.Contains(line, " note ") {
				listed++
			}
			if strings.Contains(line, `xend"}`) {
				whole++
			}
		}
		if whole < want[0] || listed < want[1] || len(text) > most+300 {
			t.Errorf("of %d bytes %d lines are whole, %d there, in %d bytes:\n%.600s", most, whole, listed, len(text), text)
		}
		if listed < 200 && !strings.HasPrefix(lines[0], fmt.Sprintf("(%d calls before that", 200-listed)) {
			t.Errorf("it begins with %q", lines[0])
		}
		if listed > 0 && !strings.HasPrefix(lines[len(lines)-1], "200.1 note ") {
			t.Errorf("it ends with %q", lines[len(lines)-1])
		}
	}
}
