package supervise

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// inBubble runs a test of a worker with a clock of its own, which stands while anything happens.
func inBubble(t *testing.T, configure func(*Config), test func(t *testing.T, w *worker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newWorker(t, configure))
	})
}

// ask begins a run of a plan of one call in the background, once all that came before it waits.
func (w *worker) ask(name, tool string, n any) <-chan asked {
	answer := make(chan asked, 1)
	go func() {
		run, err := w.Start(w.t.Context(), Start{Start: engine.Start{Context: name, Request: request(tool, n)}})
		answer <- asked{run, err}
	}()
	synctest.Wait()
	return answer
}

type asked struct {
	run *Run
	err error
}

// states returns the states of the runs at work, as "a running".
func (w *worker) states() (all []string) {
	for _, run := range w.Runs() {
		all = append(all, run.Context()+" "+run.State().String())
	}
	return all
}

func (w *worker) expectStates(want ...string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.states(); !slices.Equal(got, want) {
		w.t.Errorf("the runs are %v, not %v", got, want)
	}
}

// input is a message for a run that waits for input.n.
func input(n float64) []store.Message {
	return []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"n": n})}}
}

// unrelated is a message that wakes a run which waits for input.n, and not what it waits for.
func unrelated() []store.Message {
	return []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"x": 1.0})}}
}

// TestQueue_FirstComeFirstServed: runs have their turn in the order in which they are asked for,
// whatever their contexts, and one that is woken waits in the same line.
func TestQueue_FirstComeFirstServed(t *testing.T) {
	inBubble(t, func(c *Config) { c.Runs = 1 }, func(t *testing.T, w *worker) {
		w.expect(w.start("woken", "stop", "†input.n"), journal.RunWaiting, "null")
		w.start("a", "stop", nil)
		w.ask("b", "stop", nil)
		w.ask("a2", "stop", nil)
		if _, err := w.Append(t.Context(), "woken", input(1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.ask("c", "stop", nil)
		w.expectStates("a running", "b queued", "a2 queued", "woken queued", "c queued")
		if active, queued := w.Load(); active != 1 || queued != 4 {
			t.Errorf("%d runs have their turn, %d wait", active, queued)
		}
		for _, name := range []string{"a", "b", "a2", "woken", "c"} {
			if got := <-w.reached; got != name {
				t.Errorf("it was the turn of %s, not %s", got, name)
			}
			w.resume <- struct{}{}
		}
		w.expectStates()
	})
}

// TestQueue_Full: a request is refused if as many as allowed wait already; a run that goes on by
// itself is not.
func TestQueue_Full(t *testing.T) {
	inBubble(t, func(c *Config) { c.Runs, c.Queue = 1, 1 }, func(t *testing.T, w *worker) {
		w.expect(w.start("woken", "double", "†input.n"), journal.RunWaiting, "null")
		w.start("a", "stop", nil)
		b := w.ask("b", "double", 1)
		if _, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "c", Request: request("double", 2)}}); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		if _, err := w.Append(t.Context(), "woken", input(4)); err != nil {
			t.Fatal(err)
		}
		w.expectStates("a running", "b queued", "woken queued")
		close(w.resume)
		w.expect((<-b).run, journal.RunDone, "2")
		if outcome, err := w.Wait(t.Context(), "woken"); err != nil || outcome.Status != journal.RunDone {
			t.Error(outcome, err)
		}
	})
}

// TestQueue_ClientGone: a request whose client gives up while it waits leaves the line, and its
// turn goes to the next.
func TestQueue_ClientGone(t *testing.T) {
	inBubble(t, func(c *Config) { c.Runs = 1 }, func(t *testing.T, w *worker) {
		w.start("a", "stop", nil)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := w.Start(ctx, Start{Start: engine.Start{Context: "b", Request: request("double", 1)}})
			gone <- err
		}()
		synctest.Wait()
		c := w.ask("c", "double", 2)
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.expectStates("a running", "c queued")
		close(w.resume)
		w.expect((<-c).run, journal.RunDone, "4")
		if _, err := w.log.Info(t.Context(), "b"); !errors.Is(err, store.ErrNoContext) {
			t.Error(err)
		}
	})
}

// TestCancel_WhileQueued: a run that is cancelled while it waits for its turn ends at once, and
// leaves nothing in the log.
func TestCancel_WhileQueued(t *testing.T) {
	inBubble(t, func(c *Config) { c.Runs = 1 }, func(t *testing.T, w *worker) {
		w.start("a", "stop", nil)
		b := w.ask("b", "double", 1)
		run, err := w.Cancel(t.Context(), "b", journal.Who{})
		if err != nil {
			t.Fatal(err)
		}
		w.expect(run, journal.RunCancelled, "null")
		answer := <-b
		if answer.err != nil || answer.run.State() != Ended {
			t.Fatal(answer)
		}
		w.expect(answer.run, journal.RunCancelled, "null")
		if _, err := w.log.Info(t.Context(), "b"); !errors.Is(err, store.ErrNoContext) {
			t.Error(err)
		}
		w.expectStates("a running")
		if _, queued := w.Load(); queued != 0 {
			t.Errorf("%d wait", queued)
		}
	})
}

// TestCancel_WhileRunning: the state of a run says that it was cancelled until its calls have
// ended.
func TestCancel_WhileRunning(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		run := w.start("a", "hold", nil)
		<-w.reached
		cancelled, err := w.Cancel(t.Context(), "a", journal.Who{By: "eva"})
		if err != nil || cancelled != run {
			t.Fatal(cancelled, err)
		}
		w.expectStates("a cancelling")
		if again, err := w.Cancel(t.Context(), "a", journal.Who{By: "mo"}); err != nil || again != run {
			t.Fatal(again, err)
		}
		close(w.resume)
		w.expect(run, journal.RunCancelled, "null")
		if run.State() != Ended {
			t.Error(run.State())
		}
		if _, err := w.Cancel(t.Context(), "a", journal.Who{}); !errors.As(err, new(*journal.NoSuchCallError)) {
			t.Error(err)
		}
		if _, err := w.Cancel(t.Context(), "none", journal.Who{}); !errors.Is(err, store.ErrNoContext) {
			t.Error(err)
		}
	})
}

// TestWake_ByDecision: a decision that is recorded through the supervisor wakes its run at once.
func TestWake_ByDecision(t *testing.T) {
	inBubble(t, func(c *Config) { c.Poll = time.Hour }, func(t *testing.T, w *worker) {
		policy, err := plan.ParsePolicy("always")
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: request("double", 4), Approve: policy}})
		if err != nil {
			t.Fatal(err)
		}
		w.expect(run, journal.RunWaiting, "null")
		if run.State() != Waiting {
			t.Error(run.State())
		}
		began := time.Now()
		if err := w.Decide(t.Context(), journal.Decision{Context: "a", Call: "1.1"}); err != nil {
			t.Fatal(err)
		}
		if outcome, err := w.Wait(t.Context(), "a"); err != nil || outcome.Status != journal.RunDone || time.Since(began) != 0 {
			t.Error(outcome, err, time.Since(began))
		}
	})
}

// TestWake_ByRelease: the same for a lazy plan.
func TestWake_ByRelease(t *testing.T) {
	inBubble(t, func(c *Config) { c.Poll = time.Hour }, func(t *testing.T, w *worker) {
		lazy := request("double", 4)
		lazy.Mode = "lazy"
		run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: lazy}})
		if err != nil {
			t.Fatal(err)
		}
		w.expect(run, journal.RunWaiting, "null")
		if name, err := w.DecidePlan(t.Context(), journal.PlanDecision{Context: "a"}); name != "a" || err != nil {
			t.Fatal(name, err)
		}
		if outcome, err := w.Wait(t.Context(), "a"); err != nil || outcome.Status != journal.RunDone {
			t.Error(outcome, err)
		}
	})
}

// TestWake_ByPoll: input that another process appends wakes a run at the next poll, and its
// subscribers with it.
func TestWake_ByPoll(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		w.expect(w.start("a", "double", "†input.n"), journal.RunWaiting, "null")
		synctest.Wait()
		news, leave := w.Subscribe("a")
		defer leave()
		began := time.Now()
		if _, err := engine.Append(t.Context(), w.log, "a", input(3)); err != nil { // below the supervisor's log
			t.Fatal(err)
		}
		select {
		case <-news:
			t.Error("there is news before the poll")
		default:
		}
		<-news
		outcome, err := w.Wait(t.Context(), "a")
		if took := time.Since(began); err != nil || outcome.Status != journal.RunDone || took > DefaultPoll {
			t.Error(outcome, err, took)
		}
	})
}

// TestWake_Often: however often a run is woken, it waits once for its turn.
func TestWake_Often(t *testing.T) {
	inBubble(t, func(c *Config) { c.Runs = 1 }, func(t *testing.T, w *worker) {
		w.expect(w.start("a", "double", "†input.n"), journal.RunWaiting, "null")
		w.start("b", "stop", nil)
		<-w.reached
		for _, messages := range append(slices.Repeat([][]store.Message{unrelated()}, 10), input(4)) {
			if _, err := w.Append(t.Context(), "a", messages); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * DefaultPoll) // of the bubble's clock
		w.expectStates("b running", "a queued")
		if _, queued := w.Load(); queued != 1 {
			t.Errorf("%d wait", queued)
		}
		close(w.resume)
		if outcome, err := w.Wait(t.Context(), "a"); err != nil || outcome.Status != journal.RunDone {
			t.Error(outcome, err)
		}
	})
}

// TestWake_LooksOnce: a run that is woken by what it does not wait for looks at it once.
func TestWake_LooksOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		w.expect(w.start("a", "double", "†input.n"), journal.RunWaiting, "null")
		synctest.Wait() // else the first look for orphans may find the news too
		if _, err := w.Append(t.Context(), "a", unrelated()); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * DefaultPoll) // of the bubble's clock
		synctest.Wait()
		halts := 0
		for entry, err := range w.log.Journal(t.Context(), store.JournalFilter{Context: "a", Event: journal.EventRun}) {
			if err != nil || entry.Event != journal.EventRun {
				t.Fatal(err)
			}
			halts++
		}
		if halts != 2 {
			t.Errorf("the run has come to a halt %d times, not 2", halts)
		}
	})
}

// lost is the log of a process that dies when a call begins.
type lost struct {
	store.Log
	dead bool
}

func (l *lost) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if l.dead {
		return store.Appended{}, errors.New("the process has ended")
	}
	for _, e := range b.Journal {
		l.dead = l.dead || e.Event == "running"
	}
	return l.Log.Append(ctx, b)
}

// TestOrphans_OfDeadProcess: the run of a process that died, and whose lease nobody renews, goes on
// within a minute.
func TestOrphans_OfDeadProcess(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		other := &engine.Runner{Log: &lost{Log: w.log}, Registry: w.host.Generation().Registry()}
		if _, err := other.Run(t.Context(), engine.Start{Context: "a", Request: request("double", 2)}); err == nil {
			t.Fatal("it has not died")
		}
		died := time.Now()
		outcome, err := w.Wait(t.Context(), "a")
		if took := time.Since(died); err != nil || outcome.Status != journal.RunDone || took > time.Minute {
			t.Error(outcome, err, took)
		}
	})
}

// TestOrphans_LeftAlone: without resuming, nothing goes on that another process left.
func TestOrphans_LeftAlone(t *testing.T) {
	inBubble(t, func(c *Config) { c.NoResume = true }, func(t *testing.T, w *worker) {
		other := &engine.Runner{Log: &lost{Log: w.log}, Registry: w.host.Generation().Registry()}
		if _, err := other.Run(t.Context(), engine.Start{Context: "a", Request: request("double", 2)}); err == nil {
			t.Fatal("it has not died")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if outcome, err := w.Wait(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(outcome, err)
		}
	})
}

// failing is a log whose reads fail.
type failing struct {
	store.Log
	contexts, journal atomic.Int64 // next reads of the contexts, or of the journal of one of them, that fail
	hidden            atomic.Bool  // no context is listed
	crashed           bool         // runs that were stopped are listed as if their process had died
}

var errDisk = errors.New("the disk fails")

func (l *failing) Contexts(ctx context.Context, f store.ContextFilter) iter.Seq2[store.ContextInfo, error] {
	return func(yield func(store.ContextInfo, error) bool) {
		if l.contexts.Add(-1) >= 0 {
			yield(store.ContextInfo{}, errDisk)
			return
		}
		for info, err := range l.Log.Contexts(ctx, f) {
			if l.crashed {
				info.Standing.Status = string(journal.RunRunning)
			}
			if l.hidden.Load() || !yield(info, err) {
				return
			}
		}
	}
}

func (l *failing) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	if f.Context != "" && l.journal.Add(-1) >= 0 {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, errDisk) }
	}
	return l.Log.Journal(ctx, f)
}

// reopen shuts the supervisor down and begins another one of its log, whose reads fail.
func (w *worker) reopen(log *failing) {
	w.t.Helper()
	if err := w.Shutdown(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	log.Log = w.log
	w.open(func(c *Config) { c.Log = log })
}

// expectDone checks that the run of a context is done within a time of the bubble's clock.
func (w *worker) expectDone(name string, limit time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(limit); ; <-time.After(DefaultPoll) {
		synctest.Wait()
		outcome, err := engine.ReadOutcome(w.t.Context(), w.log, name)
		if err == nil && outcome.Status == journal.RunDone {
			return
		}
		if !time.Now().Before(end) {
			w.t.Fatalf("the run of %s is %v, %v after %s", name, outcome, err, limit)
		}
	}
}

// TestWake_UnreadableOnce: a waiting run goes on at the next poll if it could not be read when its
// input came.
func TestWake_UnreadableOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		w.expect(w.start("a", "double", "†input.n"), journal.RunWaiting, "null")
		log := &failing{}
		w.reopen(log)
		synctest.Wait()
		log.journal.Store(1)
		if _, err := engine.Append(t.Context(), w.log, "a", input(4)); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * DefaultPoll) // of the bubble's clock
		if log.journal.Load() > 0 {
			t.Error("every read has succeeded")
		}
		w.expectDone("a", 0)
	})
}

// TestWake_ManyAppends: however much another process appends to a context between two polls, its
// run is read once for that.
func TestWake_ManyAppends(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		w.expect(w.start("a", "double", "†input.n"), journal.RunWaiting, "null")
		log := &failing{}
		w.reopen(log)
		synctest.Wait()
		before := log.journal.Load()
		for range 1000 {
			if _, err := engine.Append(t.Context(), w.log, "a", unrelated()); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * DefaultPoll) // of the bubble's clock
		synctest.Wait()
		if reads := before - log.journal.Load(); reads == 0 || reads > 100 {
			t.Errorf("it was read %d times", reads)
		}
	})
}

// TestOrphans_UnreadableAtFirst: what was left goes on if the contexts could not be listed, or
// read, at first.
func TestOrphans_UnreadableAtFirst(t *testing.T) {
	for name, fail := range map[string]func(*failing){
		"list":    func(l *failing) { l.contexts.Store(1) },
		"context": func(l *failing) { l.journal.Store(2) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *worker) {
				w.start("a", "stop", nil)
				<-w.reached
				log := &failing{}
				fail(log)
				w.reopen(log)
				close(w.resume)
				w.expectDone("a", time.Minute)
			})
		})
	}
}

// TestOrphans_LapsedUnreadable: the run of a process that has died goes on if its context could not
// be read at the first scans.
func TestOrphans_LapsedUnreadable(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		w.start("a", "stop", nil)
		<-w.reached
		log := &failing{crashed: true}
		log.hidden.Store(true) // as a run that another process goes on with
		w.reopen(log)
		close(w.resume)
		<-time.After(3 * DefaultPoll) // of the bubble's clock
		log.hidden.Store(false)
		log.journal.Store(2)
		w.expectDone("a", time.Minute)
	})
}

// TestShutdown_NextGoesOn: at a shutdown runs that wait for their turn are refused, a run at work
// is stopped, and the next supervisor of the log goes on with it.
func TestShutdown_NextGoesOn(t *testing.T) {
	inBubble(t, func(c *Config) { c.Runs = 1 }, func(t *testing.T, w *worker) {
		run := w.start("a", "stop", nil)
		<-w.reached
		b := w.ask("b", "double", 1)
		waited := make(chan error)
		go func() {
			_, err := w.Wait(t.Context(), "a")
			waited <- err
		}()
		synctest.Wait()
		if err := w.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-w.Done()
		if answer := <-b; !errors.Is(answer.err, ErrStopping) {
			t.Error(answer)
		}
		w.expect(run, journal.RunInterrupted, "null")
		if err := <-waited; run.State() != Stopped || !errors.Is(err, ErrStopping) || !w.IsShutDown() {
			t.Error(run.State(), err)
		}
		if _, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "c", Request: request("double", 1)}}); !errors.Is(err, ErrStopping) {
			t.Error(err)
		}
		close(w.resume)
		w.open(nil)
		if outcome, err := w.Wait(t.Context(), "a"); err != nil || outcome.Output != "went on" {
			t.Error(outcome, err)
		}
	})
}

// TestShutdown_GivesUpWaiting: Shutdown returns when its context is done, and may be called again.
func TestShutdown_GivesUpWaiting(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		w.start("a", "hold", nil)
		<-w.reached
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.expectStates("a stopping")
		close(w.resume)
		if err := w.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		w.expectStates()
	})
}

// TestCancel_WhileStopping: a run that is cancelled during the shutdown is not resumed by the next
// supervisor.
func TestCancel_WhileStopping(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		run := w.start("a", "hold", nil)
		<-w.reached
		down := make(chan error)
		go func() { down <- w.Shutdown(t.Context()) }()
		w.expectStates("a stopping")
		if cancelled, err := w.Cancel(t.Context(), "a", journal.Who{}); err != nil || cancelled != run {
			t.Error(cancelled, err)
		}
		w.expectStates("a cancelling")
		close(w.resume)
		if err := <-down; err != nil {
			t.Error(err)
		}
		w.open(nil)
		if outcome, err := w.Wait(t.Context(), "a"); err != nil || outcome.Status != journal.RunCancelled {
			t.Error(outcome, err)
		}
	})
}

// TestStart_Refused: the reason why a run is refused is its error, nothing of it is in the log, and
// it has not been prepared before its turn.
func TestStart_Refused(t *testing.T) {
	inBubble(t, func(c *Config) { c.Runs = 1 }, func(t *testing.T, w *worker) {
		w.start("a", "stop", nil)
		<-w.reached
		no, prepared := errors.New("no such plan"), false
		answer := make(chan asked, 1)
		go func() {
			run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "b"}, Prepare: func(context.Context, *Start) error {
				prepared = true
				return no
			}})
			answer <- asked{run, err}
		}()
		synctest.Wait()
		if prepared {
			t.Error("it was prepared before its turn")
		}
		close(w.resume)
		b := <-answer
		if _, err := b.run.Wait(t.Context()); !errors.Is(err, no) || b.run.State() != Refused || isClosed(b.run.Recorded()) {
			t.Error(b.run.State(), err)
		}
		if outcome, err := w.Wait(t.Context(), "b"); err != nil || outcome.Status != "" {
			t.Error(outcome, err)
		}
	})
}

// TestEnded_OnceEach: the program is told of each run that has ended or halted.
func TestEnded_OnceEach(t *testing.T) {
	var mu sync.Mutex
	var ended []string
	tell := func(run *Run, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		ended = append(ended, run.Context()+" "+run.State().String())
	}
	inBubble(t, func(c *Config) { c.Ended = tell }, func(t *testing.T, w *worker) {
		w.expect(w.start("a", "double", 1), journal.RunDone, "2")
		synctest.Wait()
		w.expect(w.start("b", "double", "†input.n"), journal.RunWaiting, "null")
		synctest.Wait()
		w.start("c", "stop", nil)
		<-w.reached
		if err := w.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a ended", "b waiting", "c stopped"}; !slices.Equal(ended, want) {
			t.Errorf("%v, not %v", ended, want)
		}
	})
}

// TestStates_ManyAtOnce: whatever is asked of a few contexts at once, no run takes a forbidden
// transition, all end, and no place is lost.
func TestStates_ManyAtOnce(t *testing.T) {
	w := newWorker(t, func(c *Config) { c.Runs, c.Queue, c.Poll = 2, 4, time.Millisecond })
	close(w.resume)
	var group sync.WaitGroup
	for client := range 8 {
		group.Go(func() {
			for i := range 100 {
				name := string(rune('a' + (client+i)%3))
				switch (client + i/3) % 4 {
				case 0:
					_, _ = w.Start(t.Context(), Start{Start: engine.Start{Context: name, Request: request("double", "†input.n")}})
				case 1:
					_, _ = w.Append(t.Context(), name, input(1))
				case 2:
					_, _ = w.Cancel(t.Context(), name, journal.Who{})
				case 3:
					_, _ = w.Resume(t.Context(), engine.Resume{Context: name})
				}
			}
		})
	}
	group.Wait()
	if err := w.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if active, queued := w.Load(); active+queued+len(w.Runs()) != 0 {
		t.Errorf("%d runs have their turn, %d wait; left are %v", active, queued, w.states())
	}
}
