package supervise

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
)

// How orphans are looked for, in units of [Config].Poll, and the longest time before an orphan is
// tried again. A run of another process goes on within a minute from when that died: after the 30
// seconds of its lease and two scans.
const (
	pollsPerTry  = 4
	pollsPerScan = 56
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

	firstPause   time.Duration // before an orphan is tried for the second time
	scanInterval time.Duration // between two scans for runs of processes that have died
	nextScan     time.Time     // used by scan alone, as lapsed is
	lapsed       map[string]bool

	adopting sync.Mutex // held by adoptLeft
	listed   bool       // whether left has the contexts of the log
	left     []string   // contexts that adoptLeft has not looked at, or could not read

	mu        sync.Mutex
	byContext map[string]*orphan
}

// newOrphans returns no orphans, for a supervisor that polls the log in an interval.
func newOrphans(read *reader, runs *runTable, poll time.Duration) *orphans {
	o := &orphans{reader: read, runs: runs, firstPause: pollsPerTry * poll, scanInterval: pollsPerScan * poll, byContext: map[string]*orphan{}}
	o.nextScan = time.Now().Add(o.scanInterval)
	return o
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

// adoptLeft adopts the runs that other processes left before this supervisor began. Each scan calls
// it again, for the contexts that could not be read until then.
func (o *orphans) adoptLeft() {
	if !o.adopting.TryLock() {
		return // it still does
	}
	defer o.adopting.Unlock()
	if !o.listed {
		names, err := o.listRoots()
		if err != nil {
			o.logError("what was left can't be found", err)
			return
		}
		o.left, o.listed = names, true
	}
	o.left = slices.DeleteFunc(o.left, o.adopt)
}

// listRoots returns the contexts that belong to no delegate, and those that can't be read for now.
func (o *orphans) listRoots() (names []string, err error) {
	for info, err := range o.log.Contexts(o.ctx, "") {
		if err != nil {
			return nil, err
		}
		if info.Origin.Parent != "" {
			if root, err := o.rootOf(info.Context); err == nil && root != info.Context {
				continue
			}
		}
		names = append(names, info.Context)
	}
	return names, nil
}

// scan adopts, if it is time for that, the contexts of processes that have died: those whose leases
// had lapsed at the scan before as well, since a process that was suspended renews its lease.
func (o *orphans) scan() {
	if time.Now().Before(o.nextScan) {
		return
	}
	// From now on: scans that a suspended process has missed would come all at once, before other
	// processes that were suspended too had renewed their leases.
	o.nextScan = time.Now().Add(o.scanInterval)
	o.tasks.Go(o.adoptLeft)
	names, err := o.log.Lapsed(o.ctx)
	if err != nil {
		o.logError("what was left can't be found", err)
		return
	}
	found := make(map[string]bool, len(names)) // whether each was dealt with
	for _, name := range names {
		dealt, again := o.lapsed[name]
		found[name] = dealt || again && o.adopt(name)
	}
	o.lapsed = found
}

// adopt makes an orphan of the run that a context is part of, unless it is known or must not go on.
// It reports whether it could find that out.
func (o *orphans) adopt(name string) bool {
	root, err := o.rootOf(name)
	if err != nil {
		o.logError("a run can't be found", err, "context", name)
		return false
	}
	l, err := o.find(root)
	if err != nil {
		o.logError("how a run stands can't be told", err, "context", root)
		return false
	}
	if l != nil && !o.runs.isActive(root) {
		o.add(root, l)
	}
	return true
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
	switch fateOf(run, l != nil) {
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

// find returns the orphan in a root context: a run that was under way, also if only fire-and-forget
// calls are left, or a waiting run whose input has come since. It returns nil if there is none, and
// for a fork in which no run has gone on: its author decides.
func (o *orphans) find(name string) (*orphan, error) {
	context := journal.In(o.log, name)
	last, err := context.LastRun(o.ctx)
	if err != nil {
		return nil, err
	}
	statuses := []journal.RunStatus{journal.RunRunning, journal.RunInterrupted}
	if last.Status == journal.RunWaiting {
		hasInput, err := context.HasInput(o.ctx)
		if err != nil {
			return nil, err
		}
		if hasInput {
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
