package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine/journal"
	"obelus/store"
)

// standingLog is a log that compares the standing of a context with its journal after each append.
type standingLog struct {
	store.Log
	t *testing.T
}

func (l standingLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	appended, err := l.Log.Append(ctx, b)
	if err == nil && len(b.Journal) > 0 {
		checkStanding(l.t, l.Log, b.Context)
	}
	return appended, err
}

// checkStanding holds the standing of a context to its journal. Numbers of calls of a run that is
// under way may differ: calls that waited before it was resumed are looked at one after another, and
// decisions are read after they are recorded. Where its process dies it is due, and read anew.
func checkStanding(t *testing.T, log store.Log, name string) {
	t.Helper()
	info, err := log.Info(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	want, err := journal.ReadStanding(context.Background(), journal.In(log, name))
	if errors.As(err, new(*journal.DamagedError)) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := info.Standing
	if got.Due.IsZero() && want.Status == string(journal.RunRunning) { // a fork that nobody has resumed
		want.Status, want.Due = string(journal.RunInterrupted), time.Time{}
	}
	due := func(s *store.Standing) bool { return !s.Due.IsZero() }
	switch {
	case info.Holder != "" || got.Wakes: // it is under way, or something has come
	case info.Origin.Parent != "" && due(&got): // the call that it belongs to may go on with its end
	case due(&want) != due(&got):
		t.Errorf("%s is %s: due at %s, not at %s", name, got.Status, got.Due, want.Due)
	}
	if info.Origin.Fork != "" && got.Calls == 0 { // of an ended run, whose calls are not counted
		want.Calls, want.Done, want.Failed = 0, 0, 0
	}
	unread := info.Holder != "" || due(&got)
	got.Due, want.Due = time.Time{}, time.Time{}
	if unread || got.Status == string(journal.RunRunning) || got.Status == string(journal.RunInterrupted) || got.Status == string(journal.RunCancelled) {
		got.Waiting, got.Held, got.Done, got.Failed = want.Waiting, want.Held, want.Done, want.Failed
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the standing of %s is not that of its journal:\n%s", name, diff)
	}
}
