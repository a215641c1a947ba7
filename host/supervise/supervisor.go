package supervise

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host"
	"obelus/store"
)

// Config configures a [Supervisor]. It needs a Host and a Log.
type Config struct {
	Host *host.Host // the project; call its Watch to have changed scripts loaded

	// Log has the contexts. If an error of it has a method Temporary() bool that returns true, as
	// for a full disk, the operation is tried again later.
	Log store.Log

	// Each of these, if it is not above 0, is taken from the project's setting serve, and otherwise
	// the default of that name.
	Runs    int           // runs at work at once
	Queue   int           // runs that wait for their turn; a request for one more is refused
	Timeout time.Duration // of one run, after which it is cancelled

	// NoResume leaves alone the runs of a process that has died. By default they are resumed,
	// unless the project's setting says otherwise.
	NoResume bool

	// Poll is the time between two looks at the log for appends by other processes; 0 for
	// DefaultPoll.
	Poll time.Duration

	// Logger receives a record of each run. Nil discards them.
	Logger *slog.Logger

	// Observe, if it is set, is called with the records of calls, as [engine.Runner].Observe is.
	Observe func(journal.Record)

	// Ended, if it is set, is called with each run that had its turn and has ended or halted, and the
	// time that it took. Repeated tries of a run that is stuck are left out.
	Ended func(run *Run, took time.Duration)
}

// Defaults of [Config].
const (
	DefaultRuns    = 64
	DefaultQueue   = 256
	DefaultTimeout = time.Hour
	DefaultPoll    = 250 * time.Millisecond
)

// withDefaults returns the configuration with a value for each field.
func (c Config) withDefaults() Config {
	serve := c.Host.Generation().Settings().Serve
	c.Runs = cmp.Or(max(c.Runs, 0), serve.Runs, DefaultRuns)
	c.Queue = cmp.Or(max(c.Queue, 0), serve.Queue, DefaultQueue)
	c.Timeout = cmp.Or(max(c.Timeout, 0), serve.Timeout, DefaultTimeout)
	c.NoResume = c.NoResume || serve.NoResume
	c.Poll = cmp.Or(max(c.Poll, 0), DefaultPoll)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Ended == nil {
		c.Ended = func(*Run, time.Duration) {}
	}
	return c
}

// Supervisor carries out the runs of a process: it starts them when it is their turn, resumes the
// runs that a crash left, goes on with waiting ones when their input comes, and takes over the runs
// of processes that have died. Its methods may be called from several goroutines at once.
type Supervisor struct {
	config      Config
	log         *notifyingLog
	subscribers *subscribers
	news        chan struct{} // holds a token if input for a waiting run was appended here

	running context.Context // ends, with a cause, when runs are to end
	stop    context.CancelCauseFunc
	tasks   sync.WaitGroup // goroutines of the supervisor
	runs    sync.WaitGroup
	done    chan struct{} // closed once all runs have ended for good
	quiet   sync.Once     // closes it

	mu       sync.Mutex
	active   map[string]*Run    // by context
	queued   map[*Run]bool      // runs that are not active yet
	line     []*Run             // those of them that wait for a place, first come, first served
	places   int                // taken
	woken    map[string]bool    // contexts whose run waits for its turn to go on by itself
	orphans  map[string]*orphan // by context
	number   int                // of the newest run
	draining bool
}

// New returns a supervisor, which begins to follow the log and to resume the runs that a crash
// left. The caller must call Shutdown before the log is closed.
func New(c Config) *Supervisor {
	c = c.withDefaults()
	s := &Supervisor{
		config: c, subscribers: newSubscribers(), news: make(chan struct{}, 1), done: make(chan struct{}),
		active: map[string]*Run{}, queued: map[*Run]bool{}, woken: map[string]bool{}, orphans: map[string]*orphan{},
	}
	s.log = &notifyingLog{Log: c.Log, subscribers: s.subscribers, own: newOwnAppends()}
	s.running, s.stop = context.WithCancelCause(context.Background())
	seen := s.journalPosition()
	s.tasks.Go(func() { s.watch(seen) })
	if !c.NoResume {
		s.tasks.Go(s.adoptLeft)
	}
	return s
}

// Shutdown takes no more runs, ends those that run, and waits until all have ended or ctx is done:
// running calls may end within the time of the project's setting drain, and the next supervisor of
// the log resumes the rest. It may be called again, to wait longer.
func (s *Supervisor) Shutdown(ctx context.Context) error {
	s.stopRuns()
	ended := make(chan struct{})
	go func() {
		s.runs.Wait()
		s.quiet.Do(func() { close(s.done) })
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

// stopRuns takes no more runs and ends those that run.
func (s *Supervisor) stopRuns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return
	}
	s.draining = true
	s.stop(engine.ErrStopped)
	for run := range s.queued {
		if run.State() == Queued { // and not cancelled
			s.move(run, Stopped)
		}
	}
	for _, run := range s.active {
		if run.State().mayBecome(Stopping) {
			s.move(run, Stopping)
		}
	}
}

// IsShutDown reports whether Shutdown was called.
func (s *Supervisor) IsShutDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Done returns a channel that is closed once Shutdown was called and all runs have ended.
func (s *Supervisor) Done() <-chan struct{} { return s.done }

// Log returns the log of the supervisor. Appends through it reach the subscribers at once, and runs
// that wait for them at the next poll.
func (s *Supervisor) Log() store.Log { return s.log }

// Runs returns the runs that wait for their turn or are at work, in the order in which they were
// asked for.
func (s *Supervisor) Runs() []*Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Keys(s.queued)), maps.Values(s.active))
	slices.SortFunc(all, func(a, b *Run) int { return cmp.Compare(a.number, b.number) })
	return all
}

// Load returns how many runs have their turn, and how many wait for it.
func (s *Supervisor) Load() (active, queued int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places, len(s.line)
}
