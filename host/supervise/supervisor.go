package supervise

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/schedule"
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

	// Poll is the time between two looks at the log for what is due, and for appends that its Await
	// has not announced; 0 for DefaultPoll.
	Poll time.Duration

	// Rest is the length from which on a pause between two attempts of a call rests in the log, see
	// [engine.Runner]; 0 for DefaultRest.
	Rest time.Duration

	// Logger receives a record of each run. Nil discards them.
	Logger *slog.Logger

	// Observe, if it is set, is called with the records of calls, as [engine.Runner].Observe is.
	Observe func(journal.Record)

	// Spent and Watch are those of [engine.Runner]; either may be nil.
	Spent func(plan.Usage)
	Watch func(context, call, text string)

	// Now tells the time by which schedules are due; nil for [time.Now].
	Now func() time.Time

	// Skipped, if it is set, is called with the runs of a schedule that this process has decided to
	// skip.
	Skipped func(schedule string, k schedule.Skipped)

	// Ended, if it is set, is called with each run that had its turn and has ended or halted, and the
	// time that it took. Repeated tries of a run that is stuck are left out.
	Ended func(run *Run, took time.Duration)
}

// Defaults of [Config].
const (
	DefaultRuns    = 64
	DefaultQueue   = 256
	DefaultTimeout = time.Hour
	DefaultPoll    = time.Second
	DefaultRest    = 10 * time.Second
)

// withDefaults returns the configuration with a value for each field.
func (c Config) withDefaults() Config {
	serve := c.Host.Generation().Settings().Serve
	c.Runs = cmp.Or(max(c.Runs, 0), serve.Runs, DefaultRuns)
	c.Queue = cmp.Or(max(c.Queue, 0), serve.Queue, DefaultQueue)
	c.Timeout = cmp.Or(max(c.Timeout, 0), serve.Timeout, DefaultTimeout)
	c.NoResume = c.NoResume || serve.NoResume
	c.Poll = cmp.Or(max(c.Poll, 0), DefaultPoll)
	c.Rest = cmp.Or(max(c.Rest, 0), DefaultRest)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Skipped == nil {
		c.Skipped = func(string, schedule.Skipped) {}
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
	runs        *runTable
	queue       *queue
	orphans     *orphans
	watcher     *watcher
	scheduler   *scheduler
	reactor     *reactor

	running context.Context // ends, with a cause, when runs are to end
	stop    context.CancelCauseFunc
	tasks   sync.WaitGroup // goroutines of the supervisor
	done    chan struct{}  // closed once all runs have ended for good
	quiet   sync.Once      // closes it
}

// New returns a supervisor, which begins to follow the log and to resume the runs that a crash
// left. The caller must call Shutdown before the log is closed.
func New(c Config) *Supervisor {
	c = c.withDefaults()
	s := &Supervisor{
		config: c, subscribers: newSubscribers(), runs: newRunTable(c.Logger),
		queue: &queue{places: c.Runs, limit: c.Queue}, done: make(chan struct{}),
	}
	s.log = &notifyingLog{Log: c.Log, subscribers: s.subscribers, own: newOwnAppends()}
	s.running, s.stop = context.WithCancelCause(context.Background())
	read := &reader{ctx: s.running, log: s.log, logger: c.Logger}
	s.orphans = newOrphans(read, s.runs, c.Poll)
	s.orphans.onlyWaiting = c.NoResume
	s.orphans.generation = func() int { return c.Host.Generation().Number }
	s.orphans.resume, s.orphans.tasks = s.resumeUnasked, &s.tasks
	s.watcher = &watcher{
		reader: read, poll: c.Poll, subscribers: s.subscribers, runs: s.runs, orphans: s.orphans,
		resume: s.resumeUnasked, tasks: &s.tasks, news: make(chan struct{}, 1), seen: unread,
	}
	s.scheduler = newScheduler(s, read)
	s.reactor = &reactor{reader: read, generation: c.Host.Generation, startRun: s.Start, tasks: &s.tasks}
	s.watcher.react = s.reactor.notice
	s.watcher.polled = func() { s.scheduler.noticeReload(c.Host.Generation().Number) }
	_ = s.watcher.findPosition() // an error is logged by the watcher, which tries again
	s.tasks.Go(s.watcher.run)
	s.tasks.Go(s.watcher.follow)
	s.tasks.Go(s.scheduler.run)
	s.tasks.Go(s.removeOld)
	s.tasks.Go(s.reactor.catchUp)
	return s
}

// Shutdown takes no more runs, ends those that run, and waits until all have ended or ctx is done:
// running calls may end within the time of the project's setting drain, and the next supervisor of
// the log resumes the rest. It may be called again, to wait longer.
func (s *Supervisor) Shutdown(ctx context.Context) error {
	s.runs.stop()
	s.stop(engine.ErrStopped)
	ended := make(chan struct{})
	go func() {
		s.runs.atWork.Wait()
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

// IsShutDown reports whether Shutdown was called.
func (s *Supervisor) IsShutDown() bool { return s.runs.isStopped() }

// Done returns a channel that is closed once Shutdown was called and all runs have ended.
func (s *Supervisor) Done() <-chan struct{} { return s.done }

// Log returns the log of the supervisor. Appends through it reach the subscribers at once, and runs
// that wait for them at the next poll.
func (s *Supervisor) Log() store.Log { return s.log }

// Runs returns the runs that wait for their turn or are at work, in the order in which they were
// asked for.
func (s *Supervisor) Runs() []*Run { return s.runs.all() }

// Load returns how many runs have their turn, and how many wait for it. A run that has its turn and
// waits for the end of another one in its context counts among the first, and its state is Queued.
func (s *Supervisor) Load() (active, queued int) { return s.queue.load() }

// Stuck reports whether the run of a context has ended for now and is tried again by itself: since
// the log can't be written, the scripts refuse it, or another process holds the context. The reason
// is the error of the scripts, or "".
func (s *Supervisor) Stuck(name string) (reason string, ok bool) { return s.orphans.stuck(name) }
