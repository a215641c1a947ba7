package supervise

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
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

// firstPause returns the time before an orphan is tried for the second time.
func (s *Supervisor) firstPause() time.Duration { return pollsPerTry * s.config.Poll }

// scanInterval returns the time between two scans for runs of processes that have died.
func (s *Supervisor) scanInterval() time.Duration { return pollsPerScan * s.config.Poll }

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

// Stuck reports whether the run of a context has ended for now and is tried again by itself: since
// the log can't be written, the scripts refuse it, or another process holds the context. The reason
// is the error of the scripts, or "".
func (s *Supervisor) Stuck(name string) (reason string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.orphans[name]
	if l == nil || l.pause == 0 {
		return "", false
	}
	return l.why, true
}

// adoptLeft adopts the runs that another process left before this supervisor began.
func (s *Supervisor) adoptLeft() {
	left := s.findOrphans()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range left {
		if s.orphans[name] == nil { // it may have become one meanwhile
			s.orphans[name] = l
		}
	}
	signal(s.news)
}

// adoptLapsed adopts the contexts of processes that have died: those whose leases had lapsed at the
// scan before as well, since a process that was suspended renews its lease. It returns the contexts
// with lapsed leases, and whether each was dealt with.
func (s *Supervisor) adoptLapsed(before map[string]bool) map[string]bool {
	names, err := s.log.Lapsed(s.running)
	if err != nil {
		s.logError("what was left can't be found", err)
		return before
	}
	found := make(map[string]bool, len(names))
	for _, name := range names {
		dealt, again := before[name]
		found[name] = dealt || again && s.adopt(name)
	}
	return found
}

// adopt makes an orphan of the run that a context is part of, unless it is known or must not go on.
// It reports whether it could find that out.
func (s *Supervisor) adopt(name string) bool {
	root, ok := s.rootOf(name)
	if !ok {
		return false
	}
	l := s.findOrphan(root)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l != nil && s.active[root] == nil && s.orphans[root] == nil {
		s.orphans[root] = l
	}
	return true
}

// dueOrphans returns the contexts of orphans whose time has come.
func (s *Supervisor) dueOrphans() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.orphans {
		if s.dueOrphan(name) != nil {
			names = append(names, name)
		}
	}
	return names
}

// dueOrphan returns the orphan of a context if its time has come, else nil. The caller holds the
// lock.
func (s *Supervisor) dueOrphan(name string) *orphan {
	l := s.orphans[name]
	if l == nil || s.active[name] != nil {
		return nil
	}
	if time.Now().Before(l.after) && (l.refused == 0 || l.refused == s.config.Host.Generation().Number) {
		return nil
	}
	return l
}

// takeOver goes on with an orphan, unless another process holds it, and forgets it if nothing is
// left to do. An orphan that goes on is kept until its run has ended.
func (s *Supervisor) takeOver(name string) {
	s.mu.Lock()
	found := s.dueOrphan(name)
	if found == nil {
		s.mu.Unlock()
		return
	}
	l := *found
	s.mu.Unlock()
	over := s.tryTakeOver(name, l)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := s.orphans[name]; {
	case now != found || now.after != l.after: // it was replaced or tried meanwhile
	case over:
		delete(s.orphans, name)
	default:
		now.after, now.refused = time.Now().Add(max(now.pause, s.firstPause())), 0
	}
}

// tryTakeOver goes on with an orphan, and reports whether nothing is left to do.
func (s *Supervisor) tryTakeOver(name string, l orphan) (over bool) {
	s.log.releaseLease(s.running, name)
	if holder, err := s.log.Holder(s.running, name); err != nil || holder != "" {
		return false
	}
	if l.unwanted {
		var busy *engine.BusyError
		err := engine.Cancel(s.running, s.log, name, l.who)
		return !isTemporary(err) && !errors.As(err, &busy)
	}
	is, err := s.hasStatus(name, l.statuses)
	if err == nil && is {
		s.tasks.Go(func() { s.resume(name) }) // in the background, since it may wait for its turn
	}
	return err == nil && !is
}

// keepOrphan forgets the orphan of a run that has ended, or makes an orphan of the run if it must
// be tried again: if its end could not be recorded, if the scripts as they are now refuse it, or if
// another process holds it. The time between tries doubles, since each may run calls again. A run
// that has recorded nothing is left to its caller. An orphan stays if another request for its
// context is refused. It returns the time until the next try, or 0. The caller holds the lock.
func (s *Supervisor) keepOrphan(run *Run) time.Duration {
	if run.err == nil {
		delete(s.orphans, run.context)
		return 0
	}
	l := s.orphans[run.context]
	var busy *engine.BusyError
	mended := (run.unattended || run.isRecorded()) && isFixedByScripts(run.err)
	held := run.unattended && errors.As(run.err, &busy) // the holder may not have noticed the news
	switch later := mended || held || isTemporary(run.err); {
	case run.unattended && !later:
		delete(s.orphans, run.context)
		return 0
	case !later, l == nil && !run.unattended && !run.isRecorded():
		return 0
	case l == nil:
		l = &orphan{statuses: []journal.RunStatus{journal.RunRunning, journal.RunWaiting}}
		s.orphans[run.context] = l
	}
	if l.refused, l.why = 0, ""; mended {
		l.refused, l.why = run.generation, run.err.Error()
	}
	if run.cancelledForGood {
		l.who = run.who
	}
	l.unwanted = run.cancelledForGood || l.unwanted && !(run.isRecorded() && !run.unattended)
	l.pause = min(max(2*l.pause, s.firstPause()), maxBackoff)
	l.after = time.Now().Add(l.pause)
	return l.pause
}

// isFixedByScripts reports whether other scripts, or another plan file, might avoid an error.
func isFixedByScripts(err error) bool {
	_, scripts := host.Problems(err)
	return scripts || errors.As(err, new(*plan.PlanError)) || errors.As(err, new(*engine.LostError)) || errors.Is(err, fs.ErrNotExist)
}

// findOrphans returns the runs that were under way, also if only fire-and-forget calls are left,
// and the waiting runs whose input has come since. Forks in which no run has gone on are left out:
// their author decides.
func (s *Supervisor) findOrphans() map[string]*orphan {
	all := map[string]*orphan{}
	for info, err := range s.log.Contexts(s.running, "") {
		if err != nil {
			s.logError("what was left can't be found", err)
			return nil
		}
		if info.Origin.Parent != "" {
			if root, ok := s.rootOf(info.Context); ok && root != info.Context {
				continue
			}
		}
		if l := s.findOrphan(info.Context); l != nil {
			all[info.Context] = l
		}
	}
	return all
}

// findOrphan returns the orphan in a root context, or nil.
func (s *Supervisor) findOrphan(name string) *orphan {
	statuses := []journal.RunStatus{journal.RunRunning, journal.RunInterrupted}
	if s.isTrue(name, journal.Context.HasInput) {
		statuses = append(statuses, journal.RunWaiting)
	}
	last, err := journal.In(s.log, name).LastRun(s.running)
	behind, wrong := last.LeftBehind(s.running, journal.In(s.log, name))
	if err = cmp.Or(err, wrong); err != nil {
		s.logError("how a run stands can't be told", err, "context", name)
	}
	if behind {
		statuses = append(statuses, journal.RunDone, journal.RunFailed, journal.RunWaiting)
	}
	if !isResumable(last, statuses) {
		return nil
	}
	if last.Status != journal.RunWaiting { // a waiting fork goes on when its input comes
		if untouched, err := journal.In(s.log, name).UntouchedFork(s.running); untouched || err != nil {
			return nil
		}
	}
	return &orphan{statuses: statuses}
}

// isTrue asks a question about a context, and logs an error as no.
func (s *Supervisor) isTrue(name string, of func(journal.Context, context.Context) (bool, error)) bool {
	is, err := of(journal.In(s.log, name), s.running)
	if err != nil {
		s.logError("what a context waits for can't be found", err, "context", name)
	}
	return is
}
