package web

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
)

// tail tells those who follow a context that there is something new.
type tail struct {
	mu        sync.Mutex
	followers map[string]map[chan struct{}]bool // by context
}

func newTail() *tail { return &tail{followers: map[string]map[chan struct{}]bool{}} }

// follow gives what holds something whenever there is news of a context, until
// it is left.
func (t *tail) follow(name string) (news chan struct{}, leave func()) {
	news = make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.followers[name] == nil {
		t.followers[name] = map[chan struct{}]bool{}
	}
	t.followers[name][news] = true
	return news, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.followers[name], news); len(t.followers[name]) == 0 {
			delete(t.followers, name)
		}
	}
}

func (t *tail) wake(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for news := range t.followers[name] {
		tell(news)
	}
}

// tell leaves word of news, unless there is some that has not been heeded.
func tell(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

// noticed is a log whose appends are noticed at once.
type noticed struct {
	store.Log
	tail *tail
	kept sync.Map // epochs of leases that could not be given back, by context
}

// Append appends, and tells.
func (n *noticed) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	appended, err := n.Log.Append(ctx, b)
	switch {
	case err == nil && len(b.Messages)+len(b.Journal) > 0:
		n.tail.wake(b.Context)
	case isTemporary(err):
		if b.Lease != nil && b.Lease.Epoch != 0 && b.Lease.For <= 0 {
			n.kept.Store(b.Context, b.Lease.Epoch)
		}
		err = &unwritable{err}
	}
	return appended, err
}

// giveBack gives back the lease of a context if its run could not. If that fails
// again, it is kept again.
func (n *noticed) giveBack(ctx context.Context, name string) {
	if epoch, ok := n.kept.LoadAndDelete(name); ok {
		_, _ = n.Append(ctx, store.Batch{Context: name, ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: epoch.(int64)}})
	}
}

// unwritable is a log to which nothing can be appended for now, as on a full disk.
type unwritable struct{ err error }

func (e *unwritable) Error() string { return e.err.Error() }

func (e *unwritable) Unwrap() error { return e.err }

func isUnwritable(err error) bool {
	var e *unwritable
	return errors.As(err, &e)
}

// isTemporary tells of an error of a log, or of reading a file, that may pass.
func isTemporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

// lookEvery is how often the log is looked at for what other processes append.
const lookEvery = 250 * time.Millisecond

// remindEvery is how often trouble that goes on is told of.
const remindEvery = 30 * time.Second

// follow goes on with runs that wait, when what they wait for is appended, and
// tells those who follow the log what other processes append. seen is the
// position up to which there is no news.
func (s *Server) follow(seen int64) {
	s.tasks.Go(s.recover)
	var told time.Time // that there is trouble
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.running.Done():
			return
		case <-ticker.C:
		case <-s.news:
		}
		var err error
		switch seen, err = s.look(seen); {
		case err == nil:
			told = time.Time{}
		case time.Since(told) >= remindEvery:
			told = time.Now()
			s.trouble("the log can't be followed", err)
		}
	}
}

// look does what follow does with the entries behind a position, and gives that of the
// last.
func (s *Server) look(seen int64) (int64, error) {
	for entry, err := range s.log.Journal(s.running, store.JournalFilter{After: seen}) {
		if err != nil {
			return seen, err
		}
		seen = entry.N
		s.tail.wake(entry.Context)
		switch {
		case journal.IsInput(entry):
			s.goOn(entry.Context)
		case journal.IsEnd(entry):
			s.goOnAbove(entry.Context)
		}
	}
	return seen, nil
}

// trouble logs what this server can't do for nobody in particular, unless that is
// because it is being stopped.
func (s *Server) trouble(what string, err error, about ...any) {
	if s.running.Err() == nil {
		s.logger.Error(what, append(about, "error", err)...)
	}
}

// position is the journal's newest position; 0 before the first.
func (s *Server) position() int64 {
	entry, _, err := store.Newest(s.running, s.log, store.JournalFilter{})
	if err != nil {
		s.trouble("the log can't be read", err)
	}
	return entry.N
}

// goOn looks again at the run that a context is part of, if it waits. One that
// this server has under way looks by itself, or once more when it halts.
func (s *Server) goOn(name string) {
	root, ok := s.root(name)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.active[root]; one != nil {
		one.again = true
		return
	}
	if !s.draining {
		s.tasks.Go(func() { s.resumeAlone(root, journal.RunWaiting) })
	}
}

// goOnAbove looks again at the run that a delegate's context is part of, where that had
// halted while somebody else was at the delegate, whose run has ended. One that this server
// has under way looks when it halts.
func (s *Server) goOnAbove(name string) {
	root, ok := s.root(name)
	if !ok || root == name {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[root] != nil || s.draining {
		return
	}
	s.tasks.Go(func() {
		if s.freed(root) {
			s.resumeAlone(root, journal.RunWaiting)
		}
	})
}

// root is the context whose run another one's is part of, if that can be told.
func (s *Server) root(name string) (root string, ok bool) {
	root, err := journal.In(s.log, name).Root(s.running)
	if err != nil {
		s.trouble("a run can't be found", err, "context", name)
	}
	return root, err == nil
}

// resumeAlone goes on with a run for which nobody waits, if it stands so.
func (s *Server) resumeAlone(name string, statuses ...journal.RunStatus) {
	is, err := s.stands(name, statuses)
	if err != nil {
		s.trouble("how a run stands can't be told", err, "context", name)
	}
	if is {
		s.resume(name)
	}
}

// resume goes on with a run for which nobody waits, when it is its turn.
func (s *Server) resume(name string) {
	if !s.wakes(name) {
		return
	}
	_, err := s.begin(s.running, name, true, s.resuming(engine.Resume{Context: name, Unasked: true}))
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.woken, name)
	var busy *engine.BusyError
	switch {
	case errors.As(err, &busy):
		if one := s.active[name]; one != nil {
			one.again = true
		}
	default:
		s.trouble("a run can't go on", err, "context", name)
	}
}

// stands tells whether a run stands in one of some ways; a cancelled one only
// if it was not unwanted.
func (s *Server) stands(name string, statuses []journal.RunStatus) (bool, error) {
	last, err := journal.In(s.log, name).LastRun(s.running)
	return isOf(last, statuses), err
}

func isOf(last journal.Run, statuses []journal.RunStatus) bool {
	return last.Tick > 0 && slices.Contains(statuses, last.Status) && !last.Unwanted()
}

// wakes tells whether a run is to wait for its turn to go on by itself: not if it
// does so already.
func (s *Server) wakes(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken[name] {
		return false
	}
	s.woken[name] = true
	return true
}
