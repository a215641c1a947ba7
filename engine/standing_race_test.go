package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

// beforeLog is a log in which something happens before the first append that is picked.
type beforeLog struct {
	store.Log
	picks   func(b *store.Batch) bool
	happens func()
}

func (l *beforeLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if happens := l.happens; happens != nil && l.picks(&b) {
		l.happens = nil
		happens()
	}
	return l.Log.Append(ctx, b)
}

// setsStanding picks batches that replace a standing.
func setsStanding(b *store.Batch) bool { return b.Standing != nil }

// givesBack picks batches that give a lease back and do nothing else.
func givesBack(b *store.Batch) bool {
	return b.Lease != nil && b.Lease.For == 0 && len(b.Journal)+len(b.Messages) == 0
}

// halted begins a run with a call that is held, in a plan of a mode.
func halted(t *testing.T, log store.Log, mode string) *plan.Request {
	t.Helper()
	r := newRunner(log, map[string]activity{"value": value})
	s := start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`)
	s.Request.Mode, s.Approve = mode, plan.Policy{Tools: []string{"value"}}
	outcome, err := r.Run(t.Context(), s)
	if err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	return s.Request
}

// TestStanding_EntriesInBetween: a standing that is computed from the journal takes in the entries
// that others append after it was read.
func TestStanding_EntriesInBetween(t *testing.T) {
	for name, test := range map[string]struct {
		mode     string
		does     func(t *testing.T, log store.Log) error
		happens  func(t *testing.T, log store.Log) error
		of       string
		expected store.Standing
	}{
		"a release, and the run is cancelled": {
			mode: plan.ModeLazy, does: release, happens: cancel, of: "c",
			expected: store.Standing{Status: "cancelled", Tick: 1, Calls: 1},
		},
		"a cancellation, and the plan is released": {
			mode: plan.ModeLazy, does: cancel, happens: release, of: "c",
			expected: store.Standing{Status: "cancelled", Tick: 1, Calls: 1},
		},
		"a cancellation, and the call is approved": {
			does: cancel, happens: approve, of: "c",
			expected: store.Standing{Status: "cancelled", Tick: 1, Calls: 1},
		},
		"a fork, and the call is approved": {
			does: fork, happens: approve, of: "f",
			expected: store.Standing{Status: "waiting", Tick: 1, Calls: 1, Held: 1, Wakes: true},
		},
		"a fork, and the run is cancelled": {
			does: fork, happens: cancel, of: "f",
			expected: store.Standing{Status: "cancelled", Tick: 1, Calls: 1},
		},
		"a decision, and the run is cancelled": {
			does: approve, happens: cancel, of: "c",
			expected: store.Standing{Status: "cancelled", Tick: 1, Calls: 1},
		},
	} {
		overLogs(t, name, func(t *testing.T, log store.Log) {
			halted(t, log, test.mode)
			err := test.does(t, &beforeLog{log, setsStanding, func() {
				if err := test.happens(t, log); err != nil {
					t.Error(err)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			info, err := log.Info(t.Context(), test.of)
			info.Standing.Started, info.Standing.Worked = time.Time{}, 0
			if err != nil || !info.Standing.Equal(test.expected) {
				t.Errorf("it is %+v, not %+v; %v", info.Standing, test.expected, err)
			}
		})
	}
}

// overLogs runs a test with a log in memory and with one in a file.
func overLogs(t *testing.T, name string, run func(t *testing.T, log store.Log)) {
	t.Run(name+"/memory", func(t *testing.T) { run(t, memory.New()) })
	t.Run(name+"/sqlite", func(t *testing.T) {
		log, err := sqlite.Open(filepath.Join(t.TempDir(), "log.db"), sqlite.Options{Synchronous: "normal"})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		run(t, log)
	})
}

func release(t *testing.T, log store.Log) error {
	_, err := (&engine.Runner{Log: log}).DecidePlan(t.Context(), journal.PlanDecision{Context: "c"})
	return err
}

func cancel(t *testing.T, log store.Log) error {
	return engine.Cancel(t.Context(), log, "c", journal.Who{})
}

func fork(t *testing.T, log store.Log) error {
	_, err := journal.Fork(t.Context(), log, "c", 0, "f")
	return err
}

func approve(t *testing.T, log store.Log) error {
	return newRunner(log, map[string]activity{"value": value}).Decide(t.Context(), journal.Decision{Context: "c", Call: "1.1"})
}

// TestStanding_LetGo: input that comes as a runner lets go of its context is in the standing, and the
// run is due.
func TestStanding_LetGo(t *testing.T) {
	isDue := func(t *testing.T, log store.Log) {
		t.Helper()
		info, err := log.Info(t.Context(), "c")
		if err != nil || info.Holder != "" || info.Standing.Held != 0 || info.Standing.Due.IsZero() || info.Standing.Due.After(time.Now()) {
			t.Errorf("held by %q, it is %+v, %v", info.Holder, info.Standing, err)
		}
	}
	overLogs(t, "a release before the lease is given back", func(t *testing.T, log store.Log) {
		halted(t, &beforeLog{log, givesBack, func() {
			if err := release(t, log); err != nil {
				t.Error(err)
			}
		}}, plan.ModeLazy)
		isDue(t, log)
	})
	overLogs(t, "a release as a resumed run halts again", func(t *testing.T, log store.Log) {
		request := halted(t, log, plan.ModeLazy)
		r := newRunner(&beforeLog{log, setsStanding, func() {
			if err := release(t, log); err != nil {
				t.Error(err)
			}
		}}, map[string]activity{"value": value})
		if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Request: request}); err != nil || outcome.Status != journal.RunWaiting {
			t.Fatal(outcome, err)
		}
		isDue(t, log)
	})
	for name, does := range map[string]func(*testing.T, store.Log) error{"release": release, "decision": approve} {
		overLogs(t, "a "+name+" that has read the former holder", func(t *testing.T, log store.Log) {
			mode := ""
			if name == "release" {
				mode = plan.ModeLazy
			}
			halted(t, log, mode)
			if err := does(t, &lateLog{Log: log}); err != nil {
				t.Fatal(err)
			}
			isDue(t, log)
		})
	}
}

// lateLog is a log of whose contexts the first holder that is asked for has just let go.
type lateLog struct {
	store.Log
	asked bool
}

func (l *lateLog) Holder(ctx context.Context, name string) (string, error) {
	if !l.asked {
		l.asked = true
		return "another process", nil
	}
	return l.Log.Holder(ctx, name)
}

// TestStanding_EndNotRecorded: an interrupted run whose last append is refused, once its calls have
// ended, is not due: it goes on only when it is resumed.
func TestStanding_EndNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, gate := memory.New(), make(chan struct{})
		r := newRunner(&refusingLog{Log: log, ends: 2}, map[string]activity{"late": gated(map[string]chan struct{}{"gate": gate})})
		r.Drain = time.Hour
		ctx, interrupt := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := r.Run(ctx, start(t, `[{"_tool": "late", "gate": "gate", "value": 1, "_outputPath": "†a"}]`))
			failed <- err
		}()
		synctest.Wait()
		interrupt()
		synctest.Wait()
		if info, err := log.Info(t.Context(), "c"); err != nil || info.Standing.Due.IsZero() {
			t.Errorf("a run that drains is not due: %+v, %v", info.Standing, err)
		}
		close(gate)
		if err := <-failed; !errors.Is(err, errRefused) {
			t.Errorf("it ended with %v", err)
		}
		info, err := log.Info(t.Context(), "c")
		info.Standing.Started, info.Standing.Worked = time.Time{}, 0
		if want := (store.Standing{Status: "interrupted", Tick: 1, Calls: 1, Done: 1}); err != nil || info.Holder != "" || !info.Standing.Equal(want) {
			t.Errorf("held by %q, it is %+v, not %+v; %v", info.Holder, info.Standing, want, err)
		}
	})
}

// refusingLog is a log that refuses the append with one of the events of a run, counted from 1.
type refusingLog struct {
	store.Log
	ends int
}

var errRefused = errors.New("the disk is full")

func (l *refusingLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	for _, entry := range b.Journal {
		if entry.Event == journal.EventRun {
			if l.ends--; l.ends == 0 {
				return store.Appended{}, errRefused
			}
		}
	}
	return l.Log.Append(ctx, b)
}

// TestDecidePlan_Second holds that of two decisions about a plan at once the second changes nothing:
// it neither skips calls nor corrects any.
func TestDecidePlan_Second(t *testing.T) {
	for name, d := range map[string]journal.PlanDecision{
		"drop": {Context: "c", Without: []string{"1.1"}}, "reject": {Context: "c", Reject: true, Reason: "dear"},
	} {
		log := memory.New()
		halted(t, log, plan.ModeLazy)
		r := newRunner(&beforeLog{log, func(b *store.Batch) bool { return len(b.Journal) > 0 }, func() {
			if err := release(t, log); err != nil {
				t.Error(err)
			}
		}}, map[string]activity{"value": value})
		if _, err := r.DecidePlan(t.Context(), d); err == nil || !strings.Contains(err.Error(), "approved already") {
			t.Errorf("%s: %v", name, err)
		}
		records, err := journal.In(log, "c").Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			if record.Status == journal.Skipped {
				t.Errorf("%s: call %s is skipped: %s", name, record.Call, record.Reason)
			}
		}
	}
}
