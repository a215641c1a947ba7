package supervise

import (
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	forbidden = func(_ *slog.Logger, run *Run, from, next State) {
		panic(fmt.Sprintf("the run of %s is %s and must not be %s next", run.context, from, next))
	}
	os.Exit(m.Run())
}

//go:embed doc.go
var page string

// drawnTransitions reads the diagram of the package's page: chains of states with arrows, where a
// bar separates alternatives, and a remark after three spaces.
func drawnTransitions(t *testing.T) map[string]bool {
	t.Helper()
	drawn := map[string]bool{}
	for line := range strings.Lines(page) {
		chain, ok := strings.CutPrefix(line, "//\t")
		if !ok || !strings.Contains(chain, "→") {
			continue
		}
		chain, _, _ = strings.Cut(strings.TrimSpace(chain), "   ")
		links := strings.Split(chain, "→")
		for i := range len(links) - 1 {
			for from := range strings.SplitSeq(links[i], "|") {
				for next := range strings.SplitSeq(links[i+1], "|") {
					edge := strings.TrimSpace(from) + " → " + strings.TrimSpace(next)
					drawn[edge] = true
				}
			}
		}
	}
	return drawn
}

// TestStates_DiagramIsTable holds that the diagram of the package's page shows the transitions of
// the table, and no others.
func TestStates_DiagramIsTable(t *testing.T) {
	name := func(s State) string { return strings.ToUpper(s.String()[:1]) + s.String()[1:] }
	table := map[string]bool{}
	for from, all := range transitions {
		for _, next := range all {
			table[name(State(from))+" → "+name(next)] = true
		}
	}
	drawn := drawnTransitions(t)
	for _, edge := range slices.Sorted(maps.Keys(table)) {
		if !drawn[edge] {
			t.Errorf("the diagram lacks %s", edge)
		}
	}
	for _, edge := range slices.Sorted(maps.Keys(drawn)) {
		if !table[edge] {
			t.Errorf("the diagram has %s, and the table does not", edge)
		}
	}
}

// TestStates_Table holds that every state has a name and is reached, and that the final ones are
// those that no other follows.
func TestStates_Table(t *testing.T) {
	if len(transitions) != len(stateNames) {
		t.Fatalf("%d states have transitions, %d names", len(transitions), len(stateNames))
	}
	reached := map[State]bool{Queued: true}
	for _, all := range transitions {
		for _, next := range all {
			reached[next] = true
		}
	}
	for i, name := range stateNames {
		s := State(i)
		if name == "" || !reached[s] {
			t.Errorf("state %d, %q, is reached: %t", i, name, reached[s])
		}
		if final := len(transitions[s]) == 0; final != (s >= Ended) {
			t.Errorf("%s is final: %t", s, final)
		}
	}
	if text := State(200).String(); text != "state 200" {
		t.Error(text)
	}
}

// TestStates_Forbidden holds that a transition which the table lacks is noticed.
func TestStates_Forbidden(t *testing.T) {
	table := newRunTable(slog.New(slog.DiscardHandler))
	for _, pair := range [][2]State{{Queued, Running}, {Ending, Cancelling}, {Ended, Queued}, {Running, Running}} {
		func() {
			run := &Run{context: "a"}
			run.state.Store(uint32(pair[0]))
			defer func() {
				if recover() == nil {
					t.Errorf("%s → %s goes unnoticed", pair[0], pair[1])
				}
			}()
			table.move(run, pair[1])
		}()
	}
}
