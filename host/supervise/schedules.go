package supervise

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host"
	"obelus/host/once"
	"obelus/host/schedule"
	"obelus/host/schedule/ledger"
	"obelus/store"
)

// maxWait bounds the time between two looks at the schedules. The clock may be set, the machine may
// sleep, and the run that another one waits for may end in another process.
const maxWait = time.Minute

// scheduler starts the runs of the project's schedules when they are due. Several schedulers of one
// log start each run once, since its context is named by its due time and can be made once.
type scheduler struct {
	*reader
	generation func() *host.Generation
	startRun   func(ctx context.Context, s Start) (*Run, error)
	skipped    func(name string, k schedule.Skipped)
	now        func() time.Time
	tasks      *sync.WaitGroup // goroutines of the supervisor

	wake   chan struct{}     // holds a token if there may be something to do
	loaded int               // number of the newest generation; used by noticeReload alone
	looks  map[string]*looks // by schedules and their times; used by run alone

	mu       sync.Mutex
	starting map[string][]time.Time // due times of the runs that wait for their turn, by schedule
	changed  map[string]bool        // schedules to be looked at, whatever next says
}

// looks says when a schedule is looked at.
type looks struct {
	next time.Time // zero for at once
	seen bool      // the log has the schedule's times. Other servers may have others for a while.
}

// newScheduler returns a scheduler of a supervisor.
func newScheduler(s *Supervisor, read *reader) *scheduler {
	return &scheduler{
		reader: read, generation: s.config.Host.Generation, startRun: s.Start, skipped: s.config.Skipped, now: s.config.Now, tasks: &s.tasks,
		wake: make(chan struct{}, 1), starting: map[string][]time.Time{}, changed: map[string]bool{},
	}
}

// run starts runs until the supervisor is shut down.
func (c *scheduler) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		case <-c.wake:
		}
		timer.Reset(c.lookAtAll())
	}
}

// noticeReload has the schedules looked at if there are other scripts. The loop of the watcher
// calls it.
func (c *scheduler) noticeReload(generation int) {
	if generation != c.loaded {
		c.loaded = generation
		signal(c.wake)
	}
}

// noticeEnd has the schedule of a run that has ended looked at: another run may wait for that.
func (c *scheduler) noticeEnd(run string) {
	for _, s := range c.schedules() {
		if _, ok := schedule.DueOf(s.Name, run); ok {
			c.noticeChange(s.Name)
		}
	}
}

// noticeChange has a schedule looked at.
func (c *scheduler) noticeChange(name string) {
	c.tryLater(name)
	signal(c.wake)
}

// tryLater has a schedule looked at together with others, after maxWait at the latest.
func (c *scheduler) tryLater(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed[name] = true
}

// takeChanged reports whether a schedule is to be looked at whatever its next due time.
func (c *scheduler) takeChanged(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.changed[name]
	delete(c.changed, name)
	return is
}

func (c *scheduler) schedules() []host.Schedule { return c.generation().Settings().Serve.Schedules }

// lookAtAll starts the runs that are due, and returns the time until the next look.
func (c *scheduler) lookAtAll() time.Duration {
	before, now := c.looks, c.now()
	c.looks = map[string]*looks{}
	until := now.Add(maxWait)
	for _, s := range c.schedules() {
		key := s.Name + "\n" + s.Cron + "\n" + s.Zone // one with other times is another one
		l := cmp.Or(before[key], &looks{})
		if c.takeChanged(s.Name) || !now.Before(l.next) {
			c.lookAt(s, l, now)
		}
		if c.looks[key] = l; l.next.Before(until) {
			until = l.next
		}
	}
	return max(until.Sub(c.now()), 0)
}

// maxLooks bounds how often a schedule is looked at in a row while other processes change its
// state in the log.
const maxLooks = 100

// lookAt starts the runs of a schedule that are due, and sets when it is to be looked at again.
func (c *scheduler) lookAt(s host.Schedule, l *looks, now time.Time) {
	l.next = now.Add(maxWait)
	for range maxLooks {
		decision, again, err := c.decide(s, l, now)
		switch {
		case err != nil:
			c.logError("what is due of a schedule can't be found", err, "schedule", s.Name)
			return
		case again:
			continue
		case !decision.Waits:
			l.next = cmp.Or(s.When.Next(now), l.next)
		}
		return
	}
}

// decide decides once about a schedule. again reports that the log has changed or was changed, so
// that more may be due.
func (c *scheduler) decide(s host.Schedule, l *looks, now time.Time) (d schedule.Decision, again bool, err error) {
	starting := c.newestStarting(s.Name) // before the log is read: a run is in one of them at any time
	state, err := ledger.Read(c.ctx, c.log, s.Name, now)
	if err != nil {
		return d, false, err
	}
	if !l.seen && (state.Cron != s.Cron || state.Zone != s.Zone) {
		since := now
		if state.Cron == "" && state.Run != nil { // the record was pruned, or the run was made by hand
			since = state.Run.Due
		}
		_, err := state.See(c.ctx, c.log, s.Name, s.Cron, s.Zone, since)
		return d, true, err
	}
	l.seen = true
	status := state.Status()
	if starting.After(status.Known) {
		status.Known, status.Unfinished = starting, true
	}
	d = s.When.Decide(s.Policy, status, now)
	for _, skipped := range d.Skipped {
		if added, err := c.skip(&state, s.Name, ledger.Skip{Skipped: skipped}); !added || err != nil {
			return d, true, err
		}
	}
	if d.Start.IsZero() {
		return d, false, nil
	}
	c.setStarting(s.Name, d.Start)
	c.tasks.Go(func() { c.start(s, d.Start) })
	return d, true, nil
}

// newestStarting returns the newest due time of a schedule's runs that wait for their turn; zero
// for none.
func (c *scheduler) newestStarting(name string) (newest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, due := range c.starting[name] {
		if due.After(newest) {
			newest = due
		}
	}
	return newest
}

// setStarting notes that a run waits for its turn.
func (c *scheduler) setStarting(name string, due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting[name] = append(c.starting[name], due)
}

// clearStarting notes that a run waits no more: it is in the log, or it does not start.
func (c *scheduler) clearStarting(name string, due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting[name] = slices.DeleteFunc(c.starting[name], due.Equal)
}

// skip records runs that are skipped, and reports whether it could: it is false if another process
// has changed the schedule's state in the log.
func (c *scheduler) skip(state *ledger.State, name string, k ledger.Skip) (bool, error) {
	added, err := state.AddSkip(c.ctx, c.log, name, k)
	if added {
		c.skipped(name, k.Skipped)
		c.logger.Warn("runs of a schedule are skipped", "schedule", name, "reason", k.Reason, "from", k.From, "until", k.Until, "count", k.Count)
	}
	return added, err
}

// start starts the run that is due at a time, and returns once the log has it or it is refused.
func (c *scheduler) start(s host.Schedule, due time.Time) {
	name := schedule.RunName(s.Name, due)
	err := c.begin(name, s, due)
	if reason := refusal(err); reason != "" {
		err = c.recordRefusal(s.Name, due, reason, err)
	}
	c.clearStarting(s.Name, due)
	if err != nil && !isTaken(err) {
		c.logError("a run that is due can't be started", err, "context", name)
		c.tryLater(s.Name)
		return
	}
	c.noticeChange(s.Name)
}

// errCancelled is the error of a run that was cancelled before its turn.
var errCancelled = errors.New("it was cancelled before its turn")

// begin returns once the log has a run. Else its error is the run's, or errCancelled.
func (c *scheduler) begin(name string, s host.Schedule, due time.Time) error {
	run, err := c.startRun(c.ctx, Start{
		Start: engine.Start{Context: name, Once: true}, patient: true,
		Prepare: func(_ context.Context, start *Start) (err error) {
			start.Request, start.Registry, err = c.generation().Plan(s.Plan)
			if err == nil {
				start.Input = store.Some(start.Request.Lists("input", s.InputAt(due), start.Registry.Schemas...))
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	select {
	case <-run.Recorded():
		return nil
	case <-run.Ended():
	}
	outcome, err := run.Wait(c.ctx)
	if errors.Is(err, store.ErrExists) {
		err = cmp.Or(once.CheckBegun(c.ctx, c.log, name, ""), err)
	}
	if err == nil && !run.isRecorded() && outcome.Status == journal.RunCancelled {
		err = errCancelled
	}
	return err
}

// isTaken reports whether another process has made the context of a run.
func isTaken(err error) bool {
	return errors.Is(err, store.ErrExists) || errors.As(err, new(*engine.BusyError)) || errors.As(err, new(*engine.UnfinishedError))
}

// refusal returns the reason why a run is not tried again; "" if it has begun, or is tried again.
func refusal(err error) schedule.Reason {
	switch {
	case err == nil, isTaken(err), isTemporary(err), isUnwritable(err), errors.Is(err, ErrStopping), errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, errCancelled):
		return schedule.Cancelled
	}
	return schedule.Refused
}

// recordRefusal records that the run that is due at a time does not start.
func (c *scheduler) recordRefusal(name string, due time.Time, reason schedule.Reason, why error) error {
	k := ledger.Skip{Skipped: schedule.Skipped{From: due, Until: due, Count: 1, Reason: reason}}
	if reason == schedule.Refused {
		k.Error = why.Error()
	}
	for range maxLooks {
		state, err := ledger.Read(c.ctx, c.log, name, c.now())
		if err != nil || !state.Status().Known.Before(due) {
			return err
		}
		if added, err := c.skip(&state, name, k); added || err != nil {
			return err
		}
	}
	return nil
}
