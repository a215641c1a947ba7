package storetest

import (
	"strings"
	"testing"

	"obelus/store"
)

// testExchanges: exchanges with models are found by the position of their journal entry, also by a
// fork that shares it, and go with the context that they were appended to.
func testExchanges(t *testing.T, l store.Log) {
	asked := store.NewExchange("h1", `{"blocks":["ß"]}`, "an answer", "", `{"output":3}`)
	failed := store.NewExchange("h2", "{}", "", "503", `{}`)
	long := store.NewExchange("h3", strings.Repeat("x", store.MaxExchange+1), strings.Repeat("y", store.MaxExchange), "", "")
	equal(t, "a long request", [2]any{long.Request, long.RequestSize}, [2]any{"", int64(store.MaxExchange + 1)})
	equal(t, "an answer that is just not too long", len(long.Answer), store.MaxExchange)
	broken := store.NewExchange("h4", "{}", "an \xff", "503 \xff", "")
	equal(t, "an answer that is not UTF-8", [2]any{broken.Answer, broken.AnswerSize}, [2]any{"", int64(4)})
	equal(t, "a failure that is not", broken.Error, "503 \ufffd")
	equal(t, "why they are not kept", [2]string{store.WhyNotKept(broken.AnswerSize), store.WhyNotKept(long.RequestSize)},
		[2]string{"not kept: it is not UTF-8", "too long to be kept"})
	entries := []store.Entry{
		{Call: "1.1", Event: "done", Exchanges: []store.Exchange{asked, failed}},
		{Call: "1.2", Event: "done"},
		{Event: "plan", Exchanges: []store.Exchange{long, broken}},
	}
	step(t, l, "c", 1)
	refused := store.Batch{Context: "c", ExpectSeq: 7, Journal: entries}
	if _, err := l.Append(t.Context(), refused); err == nil {
		t.Fatal("an append at another seq went through")
	}
	_, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Journal: entries})
	equal(t, "error", err, nil)
	step(t, l, "c", 2)
	_, err = fork(l, "c", 2, "f")
	equal(t, "error", err, nil)

	kept := func(name string) (all [][]store.Exchange) {
		for _, e := range collect(t, l.Journal(t.Context(), store.JournalFilter{Context: name})) {
			if e.Exchanges != nil {
				t.Errorf("entry %d has its exchanges", e.N)
			}
			if e.Event != "step" && e.Event != "fork" {
				got, err := l.Exchanges(t.Context(), e.N)
				equal(t, "error", err, nil)
				all = append(all, got)
			}
		}
		return all
	}
	want := [][]store.Exchange{{asked, failed}, nil, {long, broken}}
	equal(t, "of the context", kept("c"), want)
	equal(t, "of the fork", kept("f"), want)
	first := collect(t, l.Journal(t.Context(), store.JournalFilter{Context: "c", Call: "1.1"}))[0].N
	equal(t, "error", prune(t, l, "f"), nil)
	equal(t, "once the fork is pruned", kept("c"), want)
	equal(t, "error", prune(t, l, "c"), nil)
	got, err := l.Exchanges(t.Context(), first)
	equal(t, "once the context is pruned", got, []store.Exchange(nil))
	equal(t, "error", err, nil)
}
