package supervise

import (
	"sync"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// errorReminder is the time after which an error that persists is logged again.
const errorReminder = 30 * time.Second

// watcher is the loop in which everything begins that no person asks for: waiting runs are resumed
// when their input is appended, subscribers are notified, orphans are tried again and adopted. It
// is woken by news of this process, and polls the log for the appends of others.
type watcher struct {
	*reader
	poll        time.Duration // between two polls
	adopts      bool          // whether the runs of dead processes are adopted
	subscribers *subscribers
	runs        *runTable
	orphans     *orphans
	resume      func(name string) // resumes a run that no person asked for
	tasks       *sync.WaitGroup   // goroutines of the supervisor

	news chan struct{} // holds a token if input for a waiting run was appended here
	seen int64         // position of the journal up to which there is no news, or unread
}

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
	for {
		w.orphans.takeOverDue()
		select {
		case <-w.ctx.Done():
			return
		case <-poll.C:
		case <-w.news:
		}
		switch err := w.readNews(); {
		case err == nil:
			told = time.Time{}
		case time.Since(told) >= errorReminder:
			told = time.Now()
			w.logError("the log can't be followed", err)
		}
		if w.adopts {
			w.orphans.scan()
		}
	}
}

// readNews handles the entries of the journal that it has not seen.
func (w *watcher) readNews() error {
	if err := w.findPosition(); err != nil {
		return err
	}
	w.seen = w.log.own.skip(w.seen)
	for entry, err := range w.log.Journal(w.ctx, store.JournalFilter{After: w.seen}) {
		if err != nil {
			return err
		}
		w.seen = entry.N
		w.subscribers.notify(entry.Context)
		switch {
		case journal.IsInput(entry):
			w.resumeWaiting(entry.Context)
		case journal.IsEnd(entry):
			w.resumeParent(entry.Context)
		}
	}
	return nil
}

// resumeWaiting resumes the run that a context is part of, if it waits. An active run looks for the
// news itself.
func (w *watcher) resumeWaiting(name string) {
	root, ok := w.rootOf(name)
	if ok && !w.runs.noteNews(root) {
		w.tasks.Go(func() { w.resumeIfWaiting(root) })
	}
}

// resumeParent resumes the run that a delegate's context is part of, if that had halted because
// another process held the delegate. An active run looks when it halts.
func (w *watcher) resumeParent(name string) {
	root, ok := w.rootOf(name)
	if !ok || root == name || w.runs.isActive(root) {
		return
	}
	w.tasks.Go(func() {
		if w.isTrue(root, journal.Context.ChildDone) {
			w.resumeIfWaiting(root)
		}
	})
}

// resumeIfWaiting resumes a run that no person asked for if it waits.
func (w *watcher) resumeIfWaiting(name string) {
	is, err := w.hasStatus(name, journal.RunWaiting)
	if err != nil {
		w.logError("how a run stands can't be told", err, "context", name)
	}
	if is {
		w.resume(name)
	}
}
