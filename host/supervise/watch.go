package supervise

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// errorReminder is the time after which an error that persists is logged again.
const errorReminder = 30 * time.Second

// watcher is the loop in which everything begins that no person asks for: waiting runs are resumed
// when their input is appended, subscribers are notified, orphans are tried again and adopted. It
// is woken by news of this process and by appends of others, and polls the log besides.
type watcher struct {
	*reader
	poll        time.Duration // between two polls
	subscribers *subscribers
	runs        *runTable
	orphans     *orphans
	resume      func(name string) // resumes a run that no person asked for
	polled      func()            // called at each poll
	react       func(name string) // called with a context whose run has ended or halted; may be nil
	tasks       *sync.WaitGroup   // goroutines of the supervisor

	news chan struct{} // holds a token if input for a waiting run was appended here
	seen int64         // position of the journal up to which all news is taken, or unread

	mu     sync.Mutex
	missed map[string]news // by contexts that could not be looked at, and are at the next poll
	err    error           // why the newest of them could not be
}

// news is a reason to look whether the run of a context goes on. Each includes those before it.
type news uint8

const (
	runEnded  news = iota // a run has ended in the context, for which the run of another one may wait
	childDone             // a delegate that the run waits for may have ended
	inputCame             // the run has input that it may wait for
)

// unread is the position of a journal that could not be read yet.
const unread = -1

// findPosition takes all that is in the journal for seen, unless a position is known.
func (w *watcher) findPosition() (err error) {
	if w.seen != unread {
		return nil
	}
	n, err := w.position()
	if err == nil {
		w.seen = n
	}
	return err
}

// run watches until the supervisor is shut down.
func (w *watcher) run() {
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	var told time.Time // when the error was logged last
	for scans := true; ; {
		var err error
		if scans {
			err = w.orphans.scan()
		}
		w.orphans.takeOverDue()
		switch err := cmp.Or(err, w.readNews()); {
		case err == nil:
			told = time.Time{}
		case time.Since(told) >= errorReminder && w.ctx.Err() == nil:
			told = time.Now()
			w.logError("the log can't be followed", err)
		}
		select {
		case <-w.ctx.Done():
			return
		case <-poll.C:
			scans = true
			w.polled()
		case <-w.news:
			scans = false
		}
	}
}

// gathering is the time for which appends gather before the log is read.
const gathering = 20 * time.Millisecond

// follow has run look at the log soon after appends that may hold news, of other processes too.
func (w *watcher) follow() {
	for after := int64(0); w.ctx.Err() == nil; {
		n, err := w.log.Await(w.ctx, after)
		pause := gathering
		if err != nil {
			pause = w.poll // run logs the errors of the log
		}
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(pause):
		}
		if !w.log.own.cover(after, n) {
			signal(w.news)
		}
		after = n
	}
}

// readNews looks at the contexts with entries of the journal that it has not seen, and at those
// that it has missed.
func (w *watcher) readNews() error {
	if err := w.findPosition(); err != nil {
		return err
	}
	found, missed := w.takeMissed()
	err := w.readJournal(found)
	w.resumeAll(found)
	return cmp.Or(err, missed)
}

// readJournal adds the news of the entries that it has not seen.
func (w *watcher) readJournal(found map[string]news) error {
	w.seen = w.log.own.skip(w.seen)
	for entry, err := range w.log.Journal(w.ctx, store.JournalFilter{After: w.seen}) {
		if err != nil {
			return err
		}
		w.seen = entry.N
		w.subscribers.notify(entry.Context)
		if w.react != nil && entry.Event == journal.EventRun && entry.Call == "" {
			w.react(entry.Context)
		}
		switch {
		case journal.IsInput(entry):
			addNews(found, entry.Context, inputCame)
		case journal.IsEnd(entry):
			addNews(found, entry.Context, runEnded)
		}
	}
	return nil
}

// addNews adds news of a context.
func addNews(all map[string]news, name string, what news) {
	all[name] = max(all[name], what)
}

// resumeAll resumes the runs that contexts with news are part of and that go on. An active run
// looks for the news itself, at the latest when it halts.
func (w *watcher) resumeAll(found map[string]news) {
	roots := map[string]news{}
	for name, what := range found {
		root, err := w.rootOf(name)
		switch {
		case err != nil:
			w.miss(name, what, err)
		case what > runEnded:
			addNews(roots, root, what)
		case root != name:
			addNews(roots, root, childDone)
		}
	}
	for root, what := range roots {
		active := w.runs.isActive(root)
		if what == inputCame {
			active = w.runs.noteNews(root)
		}
		if !active {
			w.tasks.Go(func() { w.resumeIfWaiting(root, what) })
		}
	}
}

// resumeIfWaiting resumes a run that no person asked for if it waits and goes on with the news.
func (w *watcher) resumeIfWaiting(name string, what news) {
	is, err := w.hasStatus(name, journal.RunWaiting)
	if is && err == nil && what == childDone {
		is, err = journal.In(w.log, name).ChildDone(w.ctx)
	}
	switch {
	case err != nil:
		w.miss(name, what, err)
	case is:
		w.resume(name)
	}
}

// miss keeps news of a context that could not be looked at, for the next poll.
func (w *watcher) miss(name string, what news, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missed == nil {
		w.missed = map[string]news{}
	}
	addNews(w.missed, name, what)
	w.err = fmt.Errorf("context %s: %w", name, err)
}

// takeMissed returns the news that was missed, not nil, and why.
func (w *watcher) takeMissed() (missed map[string]news, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	missed, err = w.missed, w.err
	w.missed, w.err = nil, nil
	if missed == nil {
		missed = map[string]news{}
	}
	return missed, err
}
