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

// isTemporary tells of an error of a log that may pass.
func isTemporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
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
	is, err := s.stands(name, statuses)
	if err != nil {
		s.logger.Error("how a run stands can't be told", "context", name, "error", err)
	}
	if !is || !s.wakes(name) {
		return
	}
	_, err = s.begin(s.running, name, true, s.resuming(engine.Resume{Context: name, Unasked: true}))
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
func (s *Server) stands(name string, statuses []engine.RunStatus) (bool, error) {
	last, err := engine.LastRun(s.running, s.log, name)
	return last.Tick > 0 && slices.Contains(statuses, last.Status) && (last.Status != engine.RunCancelled || last.Stopped), err
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

// How often a server looks at what was left, and how seldom at most it tries what
// it could not write.
const (
	lookAgain  = time.Second
	leastOften = time.Minute
)

// leftover is a run that nobody is at, if it still stands in one of some ways.
type leftover struct {
	statuses []engine.RunStatus
	unwanted bool          // it was told to end, which could not be recorded
	pause    time.Duration // that it has had before it is tried again
	after    time.Time     // when that is
}

// recover goes on with what a server or another process left when it ended, and
// with what this one could not record. One that died where this server can't see
// it keeps its runs until their leases have lapsed.
func (s *Server) recover() {
	if !s.config.NoResume {
		left := s.left()
		s.mu.Lock()
		for name, l := range left {
			if s.leftovers[name] == nil { // it may have got stuck meanwhile
				s.leftovers[name] = l
			}
		}
		s.mu.Unlock()
	}
	ticker := time.NewTicker(s.config.lookAgain)
	defer ticker.Stop()
	for {
		for _, name := range s.due() {
			s.takeOver(name)
		}
		select {
		case <-s.running.Done():
			return
		case <-ticker.C:
		}
	}
}

// due are the contexts of leftovers whose time has come.
func (s *Server) due() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.leftovers {
		if s.leftover(name) != nil {
			names = append(names, name)
		}
	}
	return names
}

// leftover is that of a context, if its time has come. The caller holds the lock.
func (s *Server) leftover(name string) *leftover {
	if l := s.leftovers[name]; l != nil && s.active[name] == nil && !time.Now().Before(l.after) {
		return l
	}
	return nil
}

// takeOver goes on with a run that was left, unless somebody else has it, and
// forgets it if nothing is left to be done. One that goes on is left until it has
// settled.
func (s *Server) takeOver(name string) {
	s.mu.Lock()
	found := s.leftover(name)
	if found == nil {
		s.mu.Unlock()
		return
	}
	l := *found
	s.mu.Unlock()
	over := s.tryTakeOver(name, l)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := s.leftovers[name]; {
	case now != found || now.after != l.after: // it has become another one
	case over:
		delete(s.leftovers, name)
	case now.pause > 0:
		now.after = time.Now().Add(now.pause)
	}
}

func (s *Server) tryTakeOver(name string, l leftover) (over bool) {
	s.log.giveBack(s.running, name)
	if holder, err := s.log.Holder(s.running, name); err != nil || holder != "" {
		return false
	}
	if l.unwanted {
		var busy *engine.BusyError
		err := engine.Cancel(s.running, s.log, name)
		return !isTemporary(err) && !errors.As(err, &busy)
	}
	is, err := s.stands(name, l.statuses)
	if err == nil && is {
		s.tasks.Go(func() { s.resumeAlone(name, l.statuses...) }) // it may wait for its turn
	}
	return err == nil && !is
}

// settled lets go of a run that is over, as far as this server is concerned, or
// keeps it if that could not be recorded: then it is tried again, ever more
// seldom, since its calls may run again each time. One of which nothing is in the
// log is left to who asked for it, and what is left stays if it is another request
// for it that is refused. It gives how long the run waits; 0 for one that is not
// kept. The caller holds the lock.
func (s *Server) settled(one *run) time.Duration {
	l := s.leftovers[one.context]
	var busy *engine.BusyError
	switch later := isTemporary(one.err); {
	case one.err == nil, one.alone && !later && !errors.As(one.err, &busy):
		delete(s.leftovers, one.context)
		return 0
	case !later, l == nil && !one.alone && !one.hasBegun():
		return 0
	case l == nil:
		l = &leftover{statuses: []engine.RunStatus{engine.RunRunning, engine.RunWaiting}}
		s.leftovers[one.context] = l
	}
	l.unwanted = one.unwanted || l.unwanted && !(one.hasBegun() && !one.alone)
	l.pause = min(max(2*l.pause, s.config.lookAgain), leastOften)
	l.after = time.Now().Add(l.pause)
	return l.pause
}

// left finds the runs that were under way, and those that wait for what has come
// since. A fork in which nobody has gone on is none of them: what runs there is
// for who made it to say.
func (s *Server) left() map[string]*leftover {
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
	all := map[string]*leftover{}
	for _, name := range roots {
		if untouched[name] {
			continue
		}
		statuses := []engine.RunStatus{engine.RunRunning, engine.RunCancelled}
		if woken[name] {
			statuses = append(statuses, engine.RunWaiting)
		}
		is, err := s.stands(name, statuses)
		if err != nil {
			s.logger.Error("how a run stands can't be told", "context", name, "error", err)
		}
		if is {
			all[name] = &leftover{statuses: statuses}
		}
	}
	return all
}
