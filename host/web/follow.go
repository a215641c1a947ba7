package web

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"obelus/engine"
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
}

// Append appends, and tells.
func (n *noticed) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	appended, err := n.Log.Append(ctx, b)
	switch {
	case err != nil && !refused(err):
		err = &unwritable{err}
	case err == nil && len(b.Messages)+len(b.Journal) > 0:
		n.tail.wake(b.Context)
	}
	return appended, err
}

// unwritable is a log to which nothing can be appended, as on a full disk.
type unwritable struct{ err error }

func (e *unwritable) Error() string { return e.err.Error() }
func (e *unwritable) Unwrap() error { return e.err }

// refused tells of an append that is refused because of what is appended, or is
// not wanted any more.
func refused(err error) bool {
	var conflict *store.ConflictError
	var held *store.HeldError
	var fork *store.ForkError
	return errors.As(err, &conflict) || errors.As(err, &held) || errors.As(err, &fork) ||
		errors.Is(err, store.ErrNoContext) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// lookEvery is how often the log is looked at for what other processes append.
const lookEvery = 250 * time.Millisecond

// follow goes on with runs that wait, when what they wait for is appended, and
// tells those who follow the log what other processes append. seen is the
// position up to which there is no news.
func (s *Server) follow(seen int64) {
	s.tasks.Go(s.recover)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.running.Done():
			return
		case <-ticker.C:
		case <-s.news:
		}
		for entry, err := range s.log.Journal(s.running, store.JournalFilter{After: seen}) {
			if err != nil {
				s.logger.Error("the log can't be followed", "error", err)
				break
			}
			seen = entry.N
			s.tail.wake(entry.Context)
			if engine.Wakes(entry) {
				s.goOn(entry.Context)
			}
		}
	}
}

// position is the journal's newest position; 0 before the first.
func (s *Server) position() int64 {
	for entry, err := range s.log.Journal(s.running, store.JournalFilter{Newest: true}) {
		if err != nil {
			s.logger.Error("the log can't be read", "error", err)
			break
		}
		return entry.N
	}
	return 0
}

// goOn looks again at the run that a context is part of, if it waits. One that
// this server has under way looks by itself, or once more when it halts.
func (s *Server) goOn(name string) {
	root, err := engine.Root(s.running, s.log, name)
	if err != nil {
		s.logger.Error("a run can't be found", "context", name, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.active[root]; one != nil {
		one.again = true
		return
	}
	if !s.draining {
		s.tasks.Go(func() { s.resumeAlone(root, engine.RunWaiting) })
	}
}

// resumeAlone goes on with a run for which nobody waits, if it stands so.
func (s *Server) resumeAlone(name string, statuses ...engine.RunStatus) {
	if !s.stands(name, statuses) || !s.wakes(name) {
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
	case s.running.Err() == nil:
		s.logger.Error("a run can't go on", "context", name, "error", err)
	}
}

// stands tells whether a run stands in one of some ways; a cancelled one only
// if it was not unwanted.
func (s *Server) stands(name string, statuses []engine.RunStatus) bool {
	last, err := engine.LastRun(s.running, s.log, name)
	return err == nil && last.Tick > 0 && slices.Contains(statuses, last.Status) && (last.Status != engine.RunCancelled || last.Stopped)
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

// lookAgain is how often a server tries to go on with what was left.
const lookAgain = time.Second

// recover goes on with what a server or another process left when it ended, and
// with what this one could not go on with as the log could not be written. One
// that died where this server can't see it keeps its runs until their leases
// have lapsed.
func (s *Server) recover() {
	var left []leftover
	if !s.config.NoResume {
		left = slices.DeleteFunc(s.left(), s.takesOver)
	}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		look := ticker.C
		if len(left) == 0 {
			look = nil
		}
		select {
		case <-s.running.Done():
			return
		case name := <-s.stuck:
			left = append(left, leftover{name, []engine.RunStatus{engine.RunRunning, engine.RunWaiting}})
		case <-look:
			left = slices.DeleteFunc(left, s.takesOver)
		}
	}
}

// getStuck notes that a run could not go on as the log could not be written.
func (s *Server) getStuck(name string) {
	s.tasks.Go(func() {
		select {
		case s.stuck <- name:
		case <-s.running.Done():
		}
	})
}

// leftover is a run that nobody is at, if it still stands in one of some ways.
type leftover struct {
	context  string
	statuses []engine.RunStatus
}

// takesOver goes on with a run that was left, unless somebody else has it.
func (s *Server) takesOver(l leftover) bool {
	if holder, err := s.log.Holder(s.running, l.context); err == nil && holder != "" {
		return false
	}
	s.resumeAlone(l.context, l.statuses...)
	return true
}

// left finds the runs that were under way, and those that wait for what has come
// since. A fork in which nobody has gone on is none of them: what runs there is
// for who made it to say.
func (s *Server) left() (all []leftover) {
	parents := map[string]string{}
	var roots, names []string
	for info, err := range s.log.Contexts(s.running, "") {
		if err != nil {
			s.logger.Error("what was left can't be found", "error", err)
			return nil
		}
		names = append(names, info.Context)
		if parents[info.Context] = info.Origin.Parent; info.Origin.Parent == "" {
			roots = append(roots, info.Context)
		}
	}
	woken, untouched := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		if is, err := engine.Woken(s.running, s.log, name); err != nil {
			s.logger.Error("what a context waits for can't be found", "context", name, "error", err)
		} else if is {
			root := name
			for parents[root] != "" {
				root = parents[root]
			}
			woken[root] = true
		}
		for entry, err := range s.log.Journal(s.running, store.JournalFilter{Context: name, Newest: true}) {
			untouched[name] = err == nil && engine.Forked(entry)
			break
		}
	}
	for _, name := range roots {
		if untouched[name] {
			continue
		}
		statuses := []engine.RunStatus{engine.RunRunning, engine.RunCancelled}
		if woken[name] {
			statuses = append(statuses, engine.RunWaiting)
		}
		if s.stands(name, statuses) {
			all = append(all, leftover{name, statuses})
		}
	}
	return all
}
