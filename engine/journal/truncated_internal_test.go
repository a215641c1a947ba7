package journal

import (
	"testing"

	"obelus/store"
	"obelus/store/memory"
)

// TestExplain_AsOf: of a context that is cut, only what came before is there; of others all.
func TestExplain_AsOf(t *testing.T) {
	log := memory.New()
	var n int64
	for i := range 3 {
		for _, name := range []string{"a", "b"} {
			appended, err := log.Append(t.Context(), store.Batch{
				Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Journal: []store.Entry{{Event: "e"}},
				Messages: []store.Message{{Type: store.TypeText, Data: "t", HasData: true}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				n = appended.N
			}
		}
	}
	l := &Truncated{log, map[string]End{}}
	for _, name := range []string{"a", "none"} {
		if err := l.Truncate(t.Context(), name, n); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"a": 2, "b": 3, "none": 0} {
		messages, entries := 0, 0
		for range l.Messages(t.Context(), store.Filter{Context: name}) {
			messages++
		}
		for range l.Journal(t.Context(), store.JournalFilter{Context: name}) {
			entries++
		}
		if name != "none" && messages != want || entries != want {
			t.Errorf("%s has %d messages and %d entries, not %d", name, messages, entries, want)
		}
	}
	if _, ok := l.Ends["none"]; ok {
		t.Error("what is not there has an end")
	}
}
