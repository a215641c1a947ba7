package supervise

import (
	"errors"
	"slices"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
)

// errorReminder is the time after which an error that persists is logged again.
const errorReminder = 30 * time.Second

// watch is the loop in which everything begins that no person asks for: waiting runs are resumed
// when their input is appended, subscribers are notified, orphans are tried again and adopted. It
// is woken by news of this process, and polls the log for the appends of others. seen is the
// position up to which there is no news.
func (s *Supervisor) watch(seen int64) {
	poll := time.NewTicker(s.config.Poll)
	defer poll.Stop()
	var told time.Time // when the error was logged last
	lapsed, scan := map[string]bool{}, time.Now().Add(s.scanInterval())
	for {
		for _, name := range s.dueOrphans() {
			s.takeOver(name)
		}
		select {
		case <-s.running.Done():
			return
		case <-poll.C:
		case <-s.news:
		}
		var err error
		switch seen, err = s.readNews(seen); {
		case err == nil:
			told = time.Time{}
		case time.Since(told) >= errorReminder:
			told = time.Now()
			s.logError("the log can't be followed", err)
		}
		if !s.config.NoResume && !time.Now().Before(scan) {
			lapsed, scan = s.adoptLapsed(lapsed), scan.Add(s.scanInterval())
		}
	}
}

// readNews handles the entries after a position, and returns the position of the last one.
func (s *Supervisor) readNews(seen int64) (int64, error) {
	seen = s.log.own.skip(seen)
	for entry, err := range s.log.Journal(s.running, store.JournalFilter{After: seen}) {
		if err != nil {
			return seen, err
		}
		seen = entry.N
		s.subscribers.notify(entry.Context)
		switch {
		case journal.IsInput(entry):
			s.resumeWaiting(entry.Context)
		case journal.IsEnd(entry):
			s.resumeParent(entry.Context)
		}
	}
	return seen, nil
}

// logError logs an error that no request caused, unless the supervisor is being stopped.
func (s *Supervisor) logError(what string, err error, about ...any) {
	if s.running.Err() == nil {
		s.config.Logger.Error(what, append(about, "error", err)...)
	}
}

// journalPosition returns the journal's newest position, or 0 before the first.
func (s *Supervisor) journalPosition() int64 {
	entry, _, err := store.Newest(s.running, s.log, store.JournalFilter{})
	if err != nil {
		s.logError("the log can't be read", err)
	}
	return entry.N
}

// resumeWaiting resumes the run that a context is part of, if it waits. If the run is active here,
// it looks for the news itself, or once more when it halts.
func (s *Supervisor) resumeWaiting(name string) {
	root, ok := s.rootOf(name)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if run := s.active[root]; run != nil {
		run.hasNews = true
		return
	}
	if !s.draining {
		s.tasks.Go(func() { s.resumeIf(root, journal.RunWaiting) })
	}
}

// resumeParent resumes the run that a delegate's context is part of, if that had halted because
// another process held the delegate. If the run is active here, it looks when it halts.
func (s *Supervisor) resumeParent(name string) {
	root, ok := s.rootOf(name)
	if !ok || root == name {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[root] != nil || s.draining {
		return
	}
	s.tasks.Go(func() {
		if s.isTrue(root, journal.Context.ChildDone) {
			s.resumeIf(root, journal.RunWaiting)
		}
	})
}

// rootOf returns the context whose run a context is part of. ok is false if that can't be read.
func (s *Supervisor) rootOf(name string) (root string, ok bool) {
	root, err := journal.In(s.log, name).Root(s.running)
	if err != nil {
		s.logError("a run can't be found", err, "context", name)
	}
	return root, err == nil
}

// resumeIf resumes a run that no person asked for if it has one of some statuses.
func (s *Supervisor) resumeIf(name string, statuses ...journal.RunStatus) {
	is, err := s.hasStatus(name, statuses)
	if err != nil {
		s.logError("how a run stands can't be told", err, "context", name)
	}
	if is {
		s.resume(name)
	}
}

// resume resumes a run that no person asked for when it is its turn.
func (s *Supervisor) resume(name string) {
	if !s.markWoken(name) {
		return
	}
	_, err := s.begin(s.running, &Run{context: name, unattended: true, resumes: true}, s.resumeFunc(engine.Resume{Context: name, Unasked: true}))
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.woken, name)
	var busy *engine.BusyError
	switch {
	case errors.As(err, &busy):
		if run := s.active[name]; run != nil {
			run.hasNews = true
		}
	default:
		s.logError("a run can't go on", err, "context", name)
	}
}

// hasStatus reports whether a context's run has one of some statuses and may go on by itself.
func (s *Supervisor) hasStatus(name string, statuses []journal.RunStatus) (bool, error) {
	last, err := journal.In(s.log, name).LastRun(s.running)
	return isResumable(last, statuses), err
}

// isResumable reports whether a run has one of some statuses and was not cancelled for good.
func isResumable(last journal.Run, statuses []journal.RunStatus) bool {
	return last.Tick > 0 && slices.Contains(statuses, last.Status) && !last.Unwanted()
}

// markWoken records that a run waits for its turn to go on by itself, and reports whether it did
// not do so before.
func (s *Supervisor) markWoken(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken[name] {
		return false
	}
	s.woken[name] = true
	return true
}
