package supervise

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
)

// How orphans are looked for, in units of [Config].Poll, and the longest time before an orphan is
// tried again. A run of another process goes on within a minute from when that died: after the 30
// seconds of its lease, or at once if it is known to have died, and pollsPerScan polls.
const (
	pollsPerTry  = 1
	pollsPerScan = 14
	maxBackoff   = time.Minute
)

// orphan is a run that no process holds and that is to go on, if it still has one of some statuses.
type orphan struct {
	statuses []journal.RunStatus
	unwanted bool          // it was cancelled, which could not be recorded
	who      journal.Who   // cancelled it
	pause    time.Duration // time between the last try and the next; 0 until it was tried
	after    time.Time     // when it is tried again
	refused  int           // the generation whose scripts refused it, or 0: with another one it is tried at once
	why      string        // the error of those scripts
}

// orphans goes on with runs that no process holds, once their time has come. Its methods may be
// called from several goroutines at once.
type orphans struct {
	*reader
	runs       *runTable
	generation func() int        // number of the scripts that are loaded
	resume     func(name string) // resumes a run that no person asked for
	tasks      *sync.WaitGroup   // goroutines of the supervisor

	firstPause time.Duration // before an orphan is tried for the second time

	// Contexts that were due and not held at the last scan, and the number of scans in a row at which
	// they were; nil before the first. Used by scan alone.
	sighted map[string]int

	onlyWaiting bool // runs of processes that have died are left alone

	mu        sync.Mutex
	byContext map[string]*orphan
	// Contexts whose run has ended with an error that lasts, and the newest position of their journal
	// then, 0 while that is not known: as long as it stays they are left alone.
	failed map[string]int64
}

// newOrphans returns no orphans, for a supervisor that polls the log in an interval.
func newOrphans(read *reader, runs *runTable, poll time.Duration) *orphans {
	return &orphans{reader: read, runs: runs, firstPause: pollsPerTry * poll, byContext: map[string]*orphan{}, failed: map[string]int64{}}
}

// add adds an orphan unless its context has one.
func (o *orphans) add(name string, l *orphan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byContext[name] == nil {
		o.byContext[name] = l
	}
}

// stuck reports whether the orphan of a context was tried and is tried again, and why scripts have
// refused it.
func (o *orphans) stuck(name string) (reason string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.byContext[name]
	if l == nil || l.pause == 0 {
		return "", false
	}
	return l.why, true
}

// knows reports whether a context has an orphan.
func (o *orphans) knows(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byContext[name] != nil
}

// scan adopts the contexts that are due and that no process holds: those that others left before
// the first scan, those whose input or time has come, and those of processes that have died. Of the
// last, the lease must have lapsed for a while, counted in scans: a process that was suspended
// renews it, and scans that this one has missed do not count.
func (o *orphans) scan() error {
	first := o.sighted == nil
	sighted := map[string]int{}
	for info, err := range o.log.Contexts(o.ctx, store.ContextFilter{Due: time.Now()}) {
		if err != nil {
			return err
		}
		if info.Holder != "" || o.onlyWaiting && info.Standing.Status != string(journal.RunWaiting) {
			continue
		}
		n := o.sighted[info.Context] + 1
		sighted[info.Context] = n
		atOnce := first || !info.Lapsed && info.Standing.Status != string(journal.RunRunning)
		if n == 1 && atOnce || n%pollsPerScan == 0 {
			o.adopt(info)
		}
	}
	o.sighted = sighted
	return nil
}

// adopt makes an orphan of the run that a due context is part of, unless it is known or at work. If
// it must not go on, the context is due no more.
func (o *orphans) adopt(info store.ContextInfo) {
	root, err := o.rootOf(info.Context)
	if at := &info.Standing; journal.RunStatus(at.Status).Finished() && at.Background > 0 {
		root = info.Context // the run around it does not wait for what goes on in the background
	}
	if err != nil {
		o.logError("a run can't be found", err, "context", info.Context)
		return
	}
	if o.knows(root) || o.runs.isActive(root) || o.hasFailed(root) {
		return
	}
	l, err := o.find(root)
	switch {
	case err != nil:
		o.logError("how a run stands can't be told", err, "context", root)
	case l != nil:
		o.add(root, l)
	default:
		o.settle(info.Context)
	}
}

// hasFailed reports whether the run of a context has ended with an error that lasts, and nothing
// has been recorded there since.
func (o *orphans) hasFailed(name string) bool {
	o.mu.Lock()
	at, failed := o.failed[name]
	o.mu.Unlock()
	if !failed {
		return false
	}
	newest, _, err := store.Newest(o.ctx, o.log, store.JournalFilter{Context: name})
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		return false
	case at == 0:
		o.failed[name] = newest.N
	case at != newest.N:
		delete(o.failed, name)
		return false
	}
	return true
}

// settle has a context be due no more, or at a later time. If anything happens in it meanwhile,
// it stays due.
func (o *orphans) settle(name string) {
	newest, _, err := store.Newest(o.ctx, o.log, store.JournalFilter{Context: name})
	var standing store.Standing
	if err == nil {
		standing, err = journal.ReadStanding(o.ctx, journal.In(o.log, name))
	}
	if err == nil {
		if standing.Status == string(journal.RunRunning) {
			standing.Status = string(journal.RunInterrupted)
		}
		if !standing.Due.After(time.Now()) {
			standing.Due = time.Time{}
		}
		_, err = o.log.Append(o.ctx, store.Batch{Context: name, ExpectSeq: store.AnySeq, ExpectN: newest.N, Standing: &standing})
	}
	if err != nil && !errors.As(err, new(*store.ConflictError)) && o.ctx.Err() == nil {
		o.logError("a context stays due", err, "context", name)
	}
}

// takeOverDue goes on with the orphans whose time has come.
func (o *orphans) takeOverDue() {
	for _, name := range o.due() {
		if !o.runs.isActive(name) {
			o.takeOver(name)
		}
	}
}

// due returns the contexts of orphans whose time has come.
func (o *orphans) due() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, l := range o.byContext {
		if o.isDue(l) {
			names = append(names, name)
		}
	}
	return names
}

// isDue reports whether the time of an orphan has come. The caller holds the lock.
func (o *orphans) isDue(l *orphan) bool {
	return !time.Now().Before(l.after) || l.refused != 0 && l.refused != o.generation()
}

// takeOver goes on with an orphan that is due, unless another process holds it, and forgets it if
// nothing is left to do. An orphan that goes on is kept until its run has ended.
func (o *orphans) takeOver(name string) {
	o.mu.Lock()
	found := o.byContext[name]
	if found == nil || !o.isDue(found) { // any more
		o.mu.Unlock()
		return
	}
	l := *found
	o.mu.Unlock()
	over := o.tryTakeOver(name, l)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch now := o.byContext[name]; {
	case now != found || now.after != l.after: // it was replaced or tried meanwhile
	case over:
		delete(o.byContext, name)
	default:
		now.after, now.refused = time.Now().Add(max(now.pause, o.firstPause)), 0
	}
}

// tryTakeOver goes on with an orphan, and reports whether nothing is left to do.
func (o *orphans) tryTakeOver(name string, l orphan) (over bool) {
	o.log.releaseLease(o.ctx, name)
	if holder, err := o.log.Holder(o.ctx, name); err != nil || holder != "" {
		return false
	}
	if l.unwanted {
		var busy *engine.BusyError
		err := engine.Cancel(o.ctx, o.log, name, l.who)
		return !isTemporary(err) && !errors.As(err, &busy)
	}
	is, err := o.hasStatus(name, l.statuses...)
	if err == nil && is {
		o.tasks.Go(func() { o.resume(name) }) // in the background, since it may wait for its turn
	}
	return err == nil && !is
}

// cancel records that the run of a context which no process holds is cancelled. If the log can't be
// written, an orphan is cancelled later, and the error is a [*PendingError].
func (o *orphans) cancel(ctx context.Context, name string, who journal.Who) error {
	o.mu.Lock()
	left := o.byContext[name]
	o.mu.Unlock()
	o.log.releaseLease(o.ctx, name)
	err := engine.Cancel(ctx, o.log, name, who)
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.byContext[name]
	switch {
	case err == nil && now == left:
		delete(o.byContext, name)
	case isUnwritable(err) && now != nil && o.ctx.Err() == nil:
		now.unwanted, now.who = true, who
		return &PendingError{Context: name, Cancelled: true, Err: err}
	}
	return err
}

// fate is the change of a context's orphan when a run of the context has ended.
type fate uint8

const (
	forgetOrphan fate = iota // nothing is left to do
	leaveOrphan              // it stays as it is, if there is one: the run's caller has its error
	retryOrphan              // it is tried again, if need be as a new one
)

// fateOf returns the fate of a context's orphan, if one is known, after a run: it is tried again if
// the run's end could not be recorded, if the scripts as they are now refuse it, or if another
// process holds it, which may not have noticed the news. A run that has recorded nothing is left to
// its caller.
func fateOf(run *Run, known bool) fate {
	goesOn := run.unattended || run.isRecorded()
	switch {
	case run.err == nil:
		return forgetOrphan
	case isTemporary(run.err) && (goesOn || known):
		return retryOrphan
	case isFixedByScripts(run.err) && goesOn:
		return retryOrphan
	case errors.As(run.err, new(*engine.BusyError)) && run.unattended:
		return retryOrphan
	case run.unattended:
		return forgetOrphan
	}
	return leaveOrphan
}

// keep forgets, leaves or tries again the orphan in the context of a run that has ended. The time
// between tries doubles, since each may run calls again. It returns the time until the next try, or
// 0.
func (o *orphans) keep(run *Run) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.byContext[run.context]
	fate := fateOf(run, l != nil)
	if delete(o.failed, run.context); fate != retryOrphan && run.err != nil && !errors.As(run.err, new(*engine.BusyError)) {
		o.failed[run.context] = 0
	}
	switch fate {
	case forgetOrphan:
		delete(o.byContext, run.context)
		return 0
	case leaveOrphan:
		return 0
	}
	if l == nil {
		l = &orphan{statuses: []journal.RunStatus{journal.RunRunning, journal.RunWaiting}}
		o.byContext[run.context] = l
	}
	if l.refused, l.why = 0, ""; isFixedByScripts(run.err) {
		l.refused, l.why = run.generation, run.err.Error()
	}
	isAskedFor := run.isRecorded() && !run.unattended
	switch {
	case run.cancelledForGood:
		l.unwanted, l.who = true, run.who
	case isAskedFor: // resumed by a person, which takes the cancellation back
		l.unwanted = false
	}
	l.pause = min(max(2*l.pause, o.firstPause), maxBackoff)
	l.after = time.Now().Add(l.pause)
	return l.pause
}

// isFixedByScripts reports whether other scripts, or another plan file, might avoid an error.
func isFixedByScripts(err error) bool {
	_, scripts := host.Problems(err)
	return scripts || errors.As(err, new(*plan.PlanError)) || errors.As(err, new(*engine.LostError)) || errors.Is(err, fs.ErrNotExist)
}

// find returns the orphan in a context: a run that was under way, also if only background calls are
// left, or a waiting run whose input has come since. It returns nil if there is none, and
// for a fork in which no run has gone on: its author decides.
func (o *orphans) find(name string) (*orphan, error) {
	context := journal.In(o.log, name)
	last, err := context.LastRun(o.ctx)
	if err != nil {
		return nil, err
	}
	statuses := []journal.RunStatus{journal.RunRunning, journal.RunInterrupted}
	if last.Status == journal.RunWaiting {
		goesOn, err := context.HasInput(o.ctx)
		if err != nil {
			return nil, err
		}
		if goesOn {
			statuses = append(statuses, journal.RunWaiting)
		}
	}
	behind, err := last.LeftBehind(o.ctx, context)
	if err != nil {
		return nil, err
	}
	if behind {
		statuses = append(statuses, journal.RunDone, journal.RunFailed, journal.RunWaiting)
	}
	if !isResumable(last, statuses) {
		return nil, nil
	}
	if last.Status != journal.RunWaiting { // a waiting fork goes on when its input comes
		if untouched, err := context.UntouchedFork(o.ctx); untouched || err != nil {
			return nil, err
		}
	}
	return &orphan{statuses: statuses}, nil
}
