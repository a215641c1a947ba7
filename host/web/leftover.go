package web

import (
	"cmp"
	"context"
	"errors"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
)

// How often a server looks at what was left, how many times for each time that it looks
// for what other processes leave, and how seldom at most it tries what it could not write.
const (
	lookAgain  = time.Second
	lookAround = 15
	leastOften = time.Minute
)

// leftover is a run that nobody is at, if it still stands in one of some ways.
type leftover struct {
	statuses []journal.RunStatus
	unwanted bool          // it was told to end, which could not be recorded
	who      journal.Who   // told it
	pause    time.Duration // that it has had before it is tried again
	after    time.Time     // when that is
	refused  int           // by the scripts of this generation: with others it is tried at once
	why      string        // and what they said
}

// stuck tells why the scripts don't let a context's run go on; empty where they do.
func (s *Server) stuck(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leftovers[name]; l != nil {
		return l.why
	}
	return ""
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
	lapsed := map[string]bool{}
	for n := 1; ; n++ {
		if n%lookAround == 0 && !s.config.NoResume {
			lapsed = s.lapsed(lapsed)
		}
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

// lapsed looks for contexts of processes that have died since: whose leases had lapsed at
// the look before, and have now, for one who slept renews them. It tells of those that it
// finds whether they have been dealt with.
func (s *Server) lapsed(before map[string]bool) map[string]bool {
	names, err := s.log.Lapsed(s.running)
	if err != nil {
		s.trouble("what was left can't be found", err)
		return before
	}
	found := make(map[string]bool, len(names))
	for _, name := range names {
		dealt, again := before[name]
		found[name] = dealt || again && s.abandoned(name)
	}
	return found
}

// abandoned adds the run that a context is part of, whose process has died, to what was
// left, unless it is known or is not to go on. It tells whether it could.
func (s *Server) abandoned(name string) bool {
	root, ok := s.root(name)
	if !ok {
		return false
	}
	l := s.leftIn(root)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l != nil && s.active[root] == nil && s.leftovers[root] == nil {
		s.leftovers[root] = l
	}
	return true
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
	l := s.leftovers[name]
	if l == nil || s.active[name] != nil {
		return nil
	}
	if time.Now().Before(l.after) && (l.refused == 0 || l.refused == s.config.Host.Generation().Number) {
		return nil
	}
	return l
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
		now.after, now.refused = time.Now().Add(now.pause), 0
	}
}

func (s *Server) tryTakeOver(name string, l leftover) (over bool) {
	s.log.giveBack(s.running, name)
	if holder, err := s.log.Holder(s.running, name); err != nil || holder != "" {
		return false
	}
	if l.unwanted {
		var busy *engine.BusyError
		err := engine.Cancel(s.running, s.log, name, l.who)
		return !isTemporary(err) && !errors.As(err, &busy)
	}
	is, err := s.stands(name, l.statuses)
	if err == nil && is {
		s.tasks.Go(func() { s.resume(name) }) // it may wait for its turn
	}
	return err == nil && !is
}

// settled lets go of a run that is over, as far as this server is concerned, or
// keeps it if that could not be recorded: then it is tried again, ever more
// seldom, since its calls may run again each time. So is one that the scripts as they
// are now don't let go on: they may be mended; and one to which something came that
// another process is at. One of which nothing is in the log is left to who asked for it,
// and what is left stays if it is another request for it that is refused. It gives how
// long the run waits; 0 for one that is not kept. The caller holds the lock.
func (s *Server) settled(one *run) time.Duration {
	l := s.leftovers[one.context]
	var busy *engine.BusyError
	mended := (one.alone || one.hasBegun()) && isOfScripts(one.err)
	held := one.alone && errors.As(one.err, &busy) // by somebody who may not take up what came
	switch later := mended || held || isTemporary(one.err); {
	case one.err == nil, one.alone && !later:
		delete(s.leftovers, one.context)
		return 0
	case !later, l == nil && !one.alone && !one.hasBegun():
		return 0
	case l == nil:
		l = &leftover{statuses: []journal.RunStatus{journal.RunRunning, journal.RunWaiting}}
		s.leftovers[one.context] = l
	}
	if l.refused, l.why = 0, ""; mended {
		l.refused, l.why = one.generation, one.err.Error()
	}
	if one.unwanted {
		l.who = one.who
	}
	l.unwanted = one.unwanted || l.unwanted && !(one.hasBegun() && !one.alone)
	l.pause = min(max(2*l.pause, s.config.lookAgain), leastOften)
	l.after = time.Now().Add(l.pause)
	return l.pause
}

// isOfScripts tells of an error whether other scripts, or another plan's file, might
// not give it.
func isOfScripts(err error) bool {
	_, scripts := host.Problems(err)
	return scripts || errors.As(err, new(*plan.PlanError)) || errors.As(err, new(*engine.LostError)) || notFound(err)
}

// left finds the runs that were under way, if only with what they left behind, and
// those that wait for what has come since. A fork in which nobody has gone on is none
// of them: what runs there is for who made it to say.
func (s *Server) left() map[string]*leftover {
	all := map[string]*leftover{}
	for info, err := range s.log.Contexts(s.running, "") {
		if err != nil {
			s.trouble("what was left can't be found", err)
			return nil
		}
		if info.Origin.Parent != "" {
			if root, ok := s.root(info.Context); ok && root != info.Context {
				continue
			}
		}
		if l := s.leftIn(info.Context); l != nil {
			all[info.Context] = l
		}
	}
	return all
}

// leftIn is what was left in a context, the run of which is part of no other; nil for
// nothing.
func (s *Server) leftIn(name string) *leftover {
	statuses := []journal.RunStatus{journal.RunRunning, journal.RunInterrupted}
	if s.comes(name) {
		statuses = append(statuses, journal.RunWaiting)
	}
	last, err := journal.In(s.log, name).LastRun(s.running)
	behind, wrong := last.LeftBehind(s.running, journal.In(s.log, name))
	if err = cmp.Or(err, wrong); err != nil {
		s.trouble("how a run stands can't be told", err, "context", name)
	}
	if behind {
		statuses = append(statuses, journal.RunDone, journal.RunFailed, journal.RunWaiting)
	}
	if !isOf(last, statuses) {
		return nil
	}
	if last.Status != journal.RunWaiting { // else what has come to it wakes it, as in any context
		if untouched, err := journal.In(s.log, name).UntouchedFork(s.running); untouched || err != nil {
			return nil
		}
	}
	return &leftover{statuses: statuses}
}

// comes tells whether a run that waits has something to go on with.
func (s *Server) comes(name string) bool { return s.told(name, journal.Context.HasInput) }

// freed tells whether it has since a delegate ended, or is free: other news is followed.
func (s *Server) freed(name string) bool { return s.told(name, journal.Context.ChildDone) }

func (s *Server) told(name string, of func(journal.Context, context.Context) (bool, error)) bool {
	is, err := of(journal.In(s.log, name), s.running)
	if err != nil {
		s.trouble("what a context waits for can't be found", err, "context", name)
	}
	return is
}
