package replay_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// counting is a log that counts the entries and the messages that are read from it.
type counting struct {
	store.Log
	entries, messages int
}

func (l *counting) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for entry, err := range l.Log.Journal(ctx, f) {
			if l.entries++; !yield(entry, err) {
				return
			}
		}
	}
}

func (l *counting) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return func(yield func(*store.Message, error) bool) {
		for m, err := range l.Log.Messages(ctx, f) {
			if l.messages++; !yield(m, err) {
				return
			}
		}
	}
}

// ran returns a runner whose log has a run of n calls, each of which reads what the one before it
// wrote.
func ran(t testing.TB, n int) (*engine.Runner, *counting) {
	t.Helper()
	log := &counting{Log: memory.New()}
	registry := plan.NewRegistry()
	registry.Activities["value"] = &plan.Registered{Name: "value", Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: in.Call["value"]}, nil
	})}
	request := &plan.Request{Output: store.Some(fmt.Sprintf("†state.c%d", n-1))}
	for i := range n {
		value := any("first")
		if i > 0 {
			value = fmt.Sprintf("†state.c%d", i-1)
		}
		call := map[string]any{"_tool": "value", "value": value, "_outputPath": fmt.Sprintf("†state.c%d", i)}
		request.Calls = append(request.Calls, plan.Source{Call: call})
	}
	r := &engine.Runner{Log: log, Registry: registry}
	if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil {
		t.Fatal(err)
	}
	log.entries, log.messages = 0, 0
	return r, log
}

// BenchmarkRun replays runs of few and of many calls, and gives how much of the log it reads.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{4, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, log := ran(b, n)
			b.ReportAllocs()
			for b.Loop() {
				replayed, err := replay.Run(b.Context(), r, "c", nil)
				if err != nil || len(replayed.Differences) > 0 {
					b.Fatal(replayed, err)
				}
			}
			b.ReportMetric(float64(log.entries)/float64(b.N), "entries/op")
			b.ReportMetric(float64(log.messages)/float64(b.N), "messages/op")
		})
	}
}
