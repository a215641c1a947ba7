package supervise

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"obelus/engine/journal"
)

// newRun returns a run as the table takes it.
func newRun(name string, unattended bool) *Run {
	return &Run{context: name, unattended: unattended, recorded: make(chan struct{}), concluded: make(chan struct{}), ended: make(chan struct{}), cancel: func(error) {}}
}

// TestTable_OneActive holds that a context has one active run, and that the next is told of it.
func TestTable_OneActive(t *testing.T) {
	table := newRunTable(slog.New(slog.DiscardHandler))
	first, next := newRun("a", false), newRun("a", false)
	if err := errors.Join(table.add(first), table.add(next)); err != nil {
		t.Fatal(err)
	}
	if found := table.find("a"); found != first {
		t.Errorf("found %v", found)
	}
	if before, err := table.activate(first); before != nil || err != nil || !table.isActive("a") {
		t.Error(before, err)
	}
	if before, err := table.activate(next); before != first || err != nil {
		t.Error(before, err)
	}
	table.record(first)
	if !table.noteNews("a") || table.closeRun(first) {
		t.Error("it has no news or was cancelled")
	}
	if idle, news := table.remove(first, Waiting); !idle || !news || first.State() != Waiting || table.noteNews("a") {
		t.Error(idle, news, first.State())
	}
	if before, err := table.activate(next); before != nil || err != nil {
		t.Error(before, err)
	}
}

// TestTable_WokenOnce holds that one unattended run of a context waits for its turn at a time.
func TestTable_WokenOnce(t *testing.T) {
	table := newRunTable(slog.New(slog.DiscardHandler))
	first, again := newRun("a", true), newRun("a", true)
	if err := table.add(first); err != nil {
		t.Fatal(err)
	}
	if err := table.add(again); !errors.Is(err, errWaking) {
		t.Error(err)
	}
	_, _ = table.withdraw(again, errWaking)
	if err := table.add(newRun("a", true)); !errors.Is(err, errWaking) {
		t.Errorf("after another one was refused: %v", err)
	}
	_, _ = table.withdraw(first, context.Canceled)
	if err := table.add(newRun("a", true)); err != nil {
		t.Errorf("after it was withdrawn: %v", err)
	}
}

// TestTable_CancelAndStop holds what becomes of runs that wait for their turn.
func TestTable_CancelAndStop(t *testing.T) {
	table := newRunTable(slog.New(slog.DiscardHandler))
	cancelled, unattended, queued := newRun("a", false), newRun("a", true), newRun("b", false)
	if err := errors.Join(table.add(cancelled), table.add(unattended), table.add(queued)); err != nil {
		t.Fatal(err)
	}
	if run, late, withdrawn := table.cancel("a", journal.Who{}); run != nil || late || !withdrawn {
		t.Error(run, late, withdrawn)
	}
	table.stop()
	if got := []State{cancelled.State(), unattended.State(), queued.State()}; got[0] != Cancelling || got[1] != Stopped || got[2] != Stopped {
		t.Error(got)
	}
	if _, err := table.activate(queued); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if run, err := table.withdraw(cancelled, context.Canceled); err != nil || run.State() != Ended || run.outcome.Status != journal.RunCancelled {
		t.Error(run, err)
	}
	if _, err := table.withdraw(queued, context.Canceled); !errors.Is(err, ErrStopping) {
		t.Error(err)
	}
	if err := table.add(newRun("c", false)); !errors.Is(err, ErrStopping) || !table.isStopped() {
		t.Error(err)
	}
}
