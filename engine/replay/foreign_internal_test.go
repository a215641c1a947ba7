package replay

import (
	"context"
	"errors"
	"iter"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// failingOnce is a log whose messages can't be read the first time.
type failingOnce struct {
	store.Reader
	failed bool
}

var errUnreadable = errors.New("it can't be read")

func (l *failingOnce) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	if l.failed {
		return l.Reader.Messages(ctx, f)
	}
	l.failed = true
	return func(yield func(*store.Message, error) bool) { yield(nil, errUnreadable) }
}

func TestForeignOf_ReadsAnewAfterAnError(t *testing.T) {
	log := memory.New()
	runner := engine.Runner{Log: log, Registry: plan.NewRegistry()}
	if _, err := runner.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{}}); err != nil {
		t.Fatal(err)
	}
	message := store.Message{Type: store.TypeData, Kind: "state", Data: store.Some("foreign")}
	if _, err := engine.Append(t.Context(), log, "c", []store.Message{message}); err != nil {
		t.Fatal(err)
	}
	r := &recorded{
		log:     &journal.Truncated{Reader: &failingOnce{Reader: log}, Ends: map[string]journal.End{}},
		foreign: map[string]*foreign{}, records: map[string]map[string]journal.Record{},
	}
	if _, err := r.Timeline(t.Context(), "c"); !errors.Is(err, errUnreadable) {
		t.Fatalf("the first time: %v", err)
	}
	f, err := r.foreignOf(t.Context(), "c")
	if err != nil || len(f.messages) != 1 {
		t.Errorf("the second time: %+v, %v", f, err)
	}
}
