package supervise

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
)

// fullDisk is an error as a log on a full disk gives it.
type fullDisk struct{}

func (fullDisk) Error() string { return "/srv/log.db can't grow: no room on the disk" }

func (fullDisk) Temporary() bool { return true }

// TestOrphans_Backoff: a run that can't be recorded is tried ever more seldom, since its calls run
// again each time, and anew once it could be.
func TestOrphans_Backoff(t *testing.T) {
	o := newOrphans(nil, nil, DefaultPoll)
	run := &Run{context: "x", err: &UnwritableError{fullDisk{}}, recorded: make(chan struct{})}
	if pause := o.keep(run); pause != 0 || o.byContext["x"] != nil {
		t.Errorf("one of which nothing is in the log is tried again after %s", pause)
	}
	close(run.recorded)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if pause := o.keep(run); pause != want*time.Second || !o.byContext["x"].after.After(time.Now()) {
			t.Errorf("it is tried again after %s, not %d s", pause, want)
		}
	}
	if run.err = nil; o.keep(run) != 0 || o.byContext["x"] != nil {
		t.Error("it is still stuck")
	}
}

// TestOrphans_Fate holds when an orphan is forgotten, left or tried again after a run of its
// context.
func TestOrphans_Fate(t *testing.T) {
	full, scripts, busy, other := &UnwritableError{fullDisk{}}, fs.ErrNotExist, &engine.BusyError{}, errors.New("it broke down")
	for _, test := range []struct {
		err                         error
		unattended, recorded, known bool
		want                        fate
	}{
		{nil, false, false, true, forgetOrphan},
		{nil, true, true, true, forgetOrphan},
		{full, false, false, false, leaveOrphan},
		{full, false, false, true, retryOrphan},
		{full, false, true, false, retryOrphan},
		{full, true, false, false, retryOrphan},
		{scripts, false, false, false, leaveOrphan},
		{scripts, false, false, true, leaveOrphan},
		{scripts, false, true, false, retryOrphan},
		{scripts, true, false, true, retryOrphan},
		{busy, false, false, true, leaveOrphan},
		{busy, false, true, true, leaveOrphan},
		{busy, true, false, true, retryOrphan},
		{other, false, true, true, leaveOrphan},
		{other, true, false, true, forgetOrphan},
		{other, true, true, true, forgetOrphan},
	} {
		run := &Run{err: test.err, unattended: test.unattended, recorded: make(chan struct{})}
		if test.recorded {
			close(run.recorded)
		}
		if got := fateOf(run, test.known); got != test.want {
			t.Errorf("%+v: it is %d", test, got)
		}
	}
}

// TestOrphans_CancelTakenBack: an orphan that is to be cancelled goes on after a person has resumed
// it, and not after it was tried by itself.
func TestOrphans_CancelTakenBack(t *testing.T) {
	for _, unattended := range []bool{false, true} {
		o := newOrphans(nil, nil, DefaultPoll)
		o.add("x", &orphan{unwanted: true})
		run := &Run{context: "x", err: &UnwritableError{fullDisk{}}, unattended: unattended, recorded: make(chan struct{})}
		close(run.recorded)
		if o.keep(run); o.byContext["x"].unwanted != unattended {
			t.Errorf("by itself: %t, and it is to be cancelled: %t", unattended, !unattended)
		}
	}
}

// TestOrphans_ForksStay: a run that was under way where a fork was made does not go on in the fork
// by itself.
func TestOrphans_ForksStay(t *testing.T) {
	w := newWorker(t, nil)
	w.expect(w.start("a", "double", 3.5), journal.RunDone, "7")
	if _, err := journal.Fork(t.Context(), w.Log(), "a", 1, "f"); err != nil {
		t.Fatal(err)
	}
	if err := w.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := journal.In(w.log, "f").LastRun(t.Context())
	if err != nil || before.Status != journal.RunRunning {
		t.Fatal(before, err)
	}
	w.open(nil)
	if left, err := w.orphans.find("f"); left != nil || err != nil {
		t.Errorf("it would go on with %v, %v", left, err)
	}
	if head, err := w.log.Head(t.Context(), "f"); err != nil || head != 1 {
		t.Errorf("the fork is at %d, %v", head, err)
	}
	run, err := w.Resume(t.Context(), engine.Resume{Context: "f"})
	if err != nil {
		t.Fatal(err)
	}
	w.expect(run, journal.RunDone, "7")
}

// TestOrphans_FoundWithinAMinute: a run of another process is found within a minute from when that
// died, the 30 s of its lease among them.
func TestOrphans_FoundWithinAMinute(t *testing.T) {
	if longest := 30*time.Second + (2*pollsPerScan+1)*DefaultPoll; longest > time.Minute {
		t.Errorf("it takes up to %s", longest)
	}
}

// fillable is a log that can't grow for a while.
type fillable struct {
	store.Log
	full atomic.Bool
}

func (f *fillable) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if f.full.Load() {
		return store.Appended{}, fullDisk{}
	}
	return f.Log.Append(ctx, b)
}

// onFullDisk tests a worker whose disk is full by the time that its run of context a ends.
func onFullDisk(t *testing.T, test func(t *testing.T, w *worker, log *fillable, run *Run)) {
	var log *fillable
	fill := func(c *Config) {
		log = &fillable{Log: c.Log}
		c.Log = log
	}
	inBubble(t, fill, func(t *testing.T, w *worker) {
		run := w.start("a", "stop", nil)
		<-w.reached
		log.full.Store(true)
		close(w.resume)
		test(t, w, log, run)
	})
}

// TestStuck_FullDisk: a run whose end can't be recorded is stuck, its client is told that it has
// begun, and it goes on when the log can be written.
func TestStuck_FullDisk(t *testing.T) {
	onFullDisk(t, func(t *testing.T, w *worker, log *fillable, run *Run) {
		_, err := run.Wait(t.Context())
		if pending, ok := errors.AsType[*PendingError](err); !ok || pending.Context != "a" || pending.Cancelled || run.State() != Stuck {
			t.Fatal(run.State(), err)
		}
		if reason, stuck := w.Stuck("a"); !stuck || reason != "" {
			t.Error(stuck, reason)
		}
		if _, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "b", Request: request("double", 1)}}); err != nil {
			t.Error(err)
		}
		if _, err := w.Append(t.Context(), "c", input(1)); !errors.As(err, new(*UnwritableError)) {
			t.Error(err)
		}
		log.full.Store(false)
		if outcome, err := w.Wait(t.Context(), "a"); err != nil || outcome.Output != "went on" {
			t.Error(outcome, err)
		}
		synctest.Wait()
		if _, stuck := w.Stuck("a"); stuck {
			t.Error("it is still stuck")
		}
	})
}

// TestStuck_Cancelled: a stuck run that is cancelled ends when that can be recorded.
func TestStuck_Cancelled(t *testing.T) {
	onFullDisk(t, func(t *testing.T, w *worker, log *fillable, run *Run) {
		<-run.Ended()
		_, err := w.Cancel(t.Context(), "a", journal.Who{By: "eva"})
		if pending, ok := errors.AsType[*PendingError](err); !ok || !pending.Cancelled {
			t.Fatal(err)
		}
		log.full.Store(false)
		if outcome, err := w.Wait(t.Context(), "a"); err != nil || outcome.Status != journal.RunCancelled {
			t.Error(outcome, err)
		}
	})
}

// broken is a log that refuses records of calls for a while, with an error that does not pass.
type broken struct {
	store.Log
	on    atomic.Bool
	fails atomic.Int64
}

func (f *broken) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if f.on.Load() && slices.ContainsFunc(b.Journal, func(e store.Entry) bool { return e.Call != "" }) {
		f.fails.Add(1)
		return store.Appended{}, errors.New("a fault that is not temporary")
	}
	return f.Log.Append(ctx, b)
}

// TestOrphans_LastingError: a run that has ended with an error that lasts is left alone until something
// is recorded in its context.
func TestOrphans_LastingError(t *testing.T) {
	var log *broken
	inBubble(t, func(c *Config) { log = &broken{Log: c.Log}; c.Log = log }, func(t *testing.T, w *worker) {
		run := w.start("a", "stop", nil)
		<-w.reached
		log.on.Store(true)
		close(w.resume)
		_, err := run.Wait(t.Context())
		if err == nil {
			t.Error("the run has no error")
		}
		for range 3 {
			time.Sleep(10 * time.Minute) // of the bubble's clock
			if again := len(w.reached); again > 0 || log.fails.Load() != 1 {
				t.Fatalf("its call ran again %d times, and %d appends have failed", again, log.fails.Load())
			}
		}
		log.on.Store(false)
		if _, err := engine.Append(t.Context(), w.log, "a", unrelated()); err != nil {
			t.Fatal(err)
		}
		w.expectDone("a", time.Minute)
	})
}

// TestOrphans_SuspendedWithDetachedCalls: the calls that a run has left to a process that is suspended
// are not cut off before that can renew its lease.
func TestOrphans_SuspendedWithDetachedCalls(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		// Another process has ended its run but for a detached call, and is suspended for more than its lease.
		due := time.Now().Add(-time.Minute)
		plan := journal.PlanEvent{Tick: 1, First: 1, Seq: 1, Calls: 1}.Entry()
		rec := journal.Record{Call: "1.1", Tick: 1, Position: 1, Tool: "double", Status: journal.Running, Unstored: true}.Entry()
		end := journal.RunEvent{Tick: 1, Status: journal.RunDone, Detached: true}.Entry()
		a, err := w.log.Append(t.Context(), store.Batch{Context: "b", Create: &store.Origin{}, Messages: []store.Message{{Type: store.TypePlan, Data: store.Some([]any{map[string]any{"_tool": "double", "n": int64(1)}})}}, Journal: []store.Entry{plan, rec, end},
			Standing: &store.Standing{Status: "done", Tick: 1, Calls: 1, Due: due}, Lease: &store.Lease{For: 30 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(34 * time.Second) // it renews within 10 s from when it goes on
		_, err = w.log.Append(t.Context(), store.Batch{Context: "b", ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: a.Epoch, For: 30 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		records, err := journal.In(w.log, "b").Records(t.Context())
		if err != nil || len(records) != 1 || records[0].Status != journal.Running {
			t.Errorf("%+v, %v", records, err)
		}
	})
}
