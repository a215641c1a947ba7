package supervise

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"obelus/engine"
	"obelus/engine/journal"
)

// runTable holds the runs of a process, from the request until they have ended or halted, and
// changes their states. One context has one active run. Its methods may be called from several
// goroutines at once.
type runTable struct {
	logger *slog.Logger
	atWork sync.WaitGroup // the active runs, until everything that follows from their ends is done

	mu      sync.Mutex
	active  map[string]*Run // by context
	queued  map[*Run]bool   // runs that are not active yet
	waking  map[string]bool // contexts with an unattended run among queued
	number  int             // of the newest run
	stopped bool
}

func newRunTable(logger *slog.Logger) *runTable {
	return &runTable{logger: logger, active: map[string]*Run{}, queued: map[*Run]bool{}, waking: map[string]bool{}}
}

// errWaking refuses an unattended run if one of its context waits for its turn already.
var errWaking = errors.New("the run waits for its turn already")

// add adds a run that is to wait for its turn.
func (t *runTable) add(run *Run) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.stopped:
		t.move(run, Stopped)
		return ErrStopping
	case run.unattended && t.waking[run.context]:
		return errWaking
	case run.unattended:
		t.waking[run.context] = true
	}
	t.number++
	run.number = t.number
	t.queued[run] = true
	return nil
}

// activate makes a run the active one of its context, or returns the run in the way. It is an error
// if the run is not to begin any more.
func (t *runTable) activate(run *Run) (before *Run, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run.State() != Queued { // it was cancelled, or stop was called
		return nil, context.Canceled
	}
	if before := t.active[run.context]; before != nil {
		return before, nil
	}
	delete(t.waking, run.context) // from now on the run itself looks at the log
	delete(t.queued, run)
	t.active[run.context] = run
	t.move(run, Starting)
	t.atWork.Add(1)
	return nil, nil
}

// withdraw ends a run that does not get its turn: it was cancelled, which is its outcome, or there
// is an error.
func (t *runTable) withdraw(run *Run, err error) (*Run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queued[run] && run.unattended {
		delete(t.waking, run.context)
	}
	delete(t.queued, run)
	defer run.close()
	switch run.State() {
	case Cancelling:
		run.outcome = cancelledOutcome(run.context)
		t.move(run, Ended)
		return run, nil
	case Stopped:
		run.err = ErrStopping
	default:
		run.err = err
		t.move(run, Refused)
	}
	return nil, run.err
}

// record notes that the log has a run.
func (t *runTable) record(run *Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run.State() == Starting { // and not cancelled or stopped meanwhile
		t.move(run, Running)
	}
	close(run.recorded)
}

// closeRun ends the time in which a run can be cancelled, and reports whether it was. A person who
// cancels it later is told how it ended.
func (t *runTable) closeRun(run *Run) (cancelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cancelled = run.State() == Cancelling
	t.move(run, Ending)
	return cancelled
}

// remove gives a run its final state and removes it. It reports whether no run is active now, and
// whether news of the run has come that it may have halted without.
func (t *runTable) remove(run *Run, final State) (idle, hasNews bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.active, run.context)
	t.move(run, final)
	return len(t.active) == 0, run.hasNews
}

// stop stops the runs and has add refuse others. The caller ends their contexts after that.
func (t *runTable) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.stopped = true
	for run := range t.queued {
		if run.State() == Queued { // and not cancelled
			t.move(run, Stopped)
		}
	}
	for _, run := range t.active {
		if run.State().mayBecome(Stopping) {
			t.move(run, Stopping)
		}
	}
}

// isStopped reports whether stop was called.
func (t *runTable) isStopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// all returns the runs in the order in which they were asked for.
func (t *runTable) all() []*Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Keys(t.queued)), maps.Values(t.active))
	slices.SortFunc(all, func(a, b *Run) int { return cmp.Compare(a.number, b.number) })
	return all
}

// find returns the run of a context that is active, or that is to have its turn first, or nil.
func (t *runTable) find(name string) *Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.active[name]
	if found != nil {
		return found
	}
	for run := range t.queued {
		if run.context == name && (found == nil || run.number < found.number) {
			found = run
		}
	}
	return found
}

// isActive reports whether a context has an active run.
func (t *runTable) isActive(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active[name] != nil
}

// noteNews notes news for the active run of a context, and reports whether there is one: it looks
// for the news itself, or once more when it halts.
func (t *runTable) noteNews(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.active[name]
	if run == nil {
		return false
	}
	run.hasNews = true
	return true
}

// cancel cancels the runs of a context: the queued ones, which then end without having begun, and
// the active one, which it returns, or nil. late reports that it is too late to cancel the active
// run, withdrawn that a queued run ends.
func (t *runTable) cancel(name string, who journal.Who) (run *Run, late, withdrawn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run = t.active[name]; run != nil {
		late = run.State() == Ending
		t.cancelRun(run, who)
	}
	for queued := range t.queued {
		if queued.context == name && !queued.unattended { // an unattended one finds it in the log
			withdrawn = true
			t.cancelRun(queued, who)
		}
	}
	return run, late, withdrawn
}

// cancelRun cancels a run unless it is cancelled, or over, already. The caller holds the lock.
func (t *runTable) cancelRun(run *Run, who journal.Who) {
	if run.State().mayBecome(Cancelling) {
		t.move(run, Cancelling)
		run.who = who
		run.cancel(&engine.CancelledError{Who: who})
	}
}
