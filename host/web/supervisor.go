package web

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host"
	"obelus/store"
)

// runObserver is notified of runs and calls.
type runObserver interface {
	run(status string, took time.Duration)
	call(r journal.Record)
}

// supervision configures a [supervisor].
type supervision struct {
	host     *host.Host
	log      store.Log
	logger   *slog.Logger
	gate     *gate // bounds the runs
	observer runObserver

	timeout   time.Duration // of one run, after which it is cancelled
	noResume  bool          // leave alone the runs of processes that have died
	lookAgain time.Duration // between two looks at orphans
}

// supervisor carries out the runs of a process: it starts them when it is their turn, resumes the
// runs that a crash left, goes on with waiting ones when their input comes, and takes over the runs
// of processes that have died. It knows no HTTP. Its methods are safe for concurrent use.
type supervisor struct {
	supervision
	log         *notifyingLog
	subscribers *subscribers
	news        chan struct{} // holds a token if this server has appended input for a waiting run

	running context.Context // ends, with a cause, when runs are to end
	stop    context.CancelCauseFunc
	tasks   sync.WaitGroup // goroutines of the supervisor
	runs    sync.WaitGroup
	drained chan struct{} // closed once all runs have ended for good
	quiet   sync.Once     // closes it

	mu       sync.Mutex
	active   map[string]*run    // by context
	queued   map[*run]bool      // runs that a client asked for and that wait for their turn
	woken    map[string]bool    // contexts whose run waits for its turn to go on by itself
	orphans  map[string]*orphan // by context
	draining bool
}

// newSupervisor returns a supervisor that does nothing by itself until start is called.
func newSupervisor(c supervision) *supervisor {
	s := &supervisor{
		supervision: c, subscribers: newSubscribers(), news: make(chan struct{}, 1), drained: make(chan struct{}),
		active: map[string]*run{}, queued: map[*run]bool{}, woken: map[string]bool{}, orphans: map[string]*orphan{},
	}
	s.log = &notifyingLog{Log: c.log, subscribers: s.subscribers}
	s.running, s.stop = context.WithCancelCause(context.Background())
	return s
}

// start begins to follow the log, and to resume the runs that were left.
func (s *supervisor) start() {
	seen := s.journalPosition()
	s.tasks.Go(func() { s.follow(seen) })
}

// drain takes no more runs, ends those that run, and waits until all have ended or ctx is done.
func (s *supervisor) drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.stop(engine.ErrStopped)
	ended := make(chan struct{})
	go func() {
		s.runs.Wait()
		s.quiet.Do(func() { close(s.drained) })
		s.tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isDraining reports whether drain was called.
func (s *supervisor) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}
