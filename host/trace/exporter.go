package trace

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// Exporter sends the newest runs of contexts in the background, one after the other. Runs that come
// faster than they can be sent are dropped.
type Exporter struct {
	log     store.Reader
	sender  *Sender
	options func() Options
	logger  *slog.Logger
	stop    context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	queue  []string // contexts, each once
	news   chan struct{}
	closed bool
	failed failures
}

// failures counts the runs that were not sent since this was logged last.
type failures struct {
	count  int
	logged time.Time
}

// Bounds of an [Exporter].
const (
	maxQueue     = 1024        // contexts that wait to be sent
	failureEvery = time.Minute // failures are logged at most so often
	readTimeout  = time.Minute // for reading a run and sending it
)

// NewExporter returns an exporter, which reads runs from a log. It asks for the options of each
// trace as it makes it. Close must be called before the log is closed.
func NewExporter(log store.Reader, s *Sender, options func() Options, logger *slog.Logger) *Exporter {
	ctx, stop := context.WithCancel(context.Background())
	e := &Exporter{log: log, sender: s, options: options, logger: logger, stop: stop, done: make(chan struct{}), news: make(chan struct{}, 1)}
	go e.run(ctx)
	return e
}

// Add has the newest run of a context sent. It never waits.
func (e *Exporter) Add(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	for _, waiting := range e.queue {
		if waiting == name { // it is read when it is its turn
			return
		}
	}
	if len(e.queue) == maxQueue {
		e.fail("", errors.New("runs end faster than they can be sent"))
		return
	}
	e.queue = append(e.queue, name)
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// Close takes no more runs, and waits until those that were added are sent. When ctx is done it
// drops the rest.
func (e *Exporter) Close(ctx context.Context) {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.news)
	}
	e.mu.Unlock()
	select {
	case <-e.done:
	case <-ctx.Done():
		e.stop()
		<-e.done
	}
	e.stop()
}

// run sends the runs of the queue until it is empty and closed, or ctx is done.
func (e *Exporter) run(ctx context.Context) {
	defer close(e.done)
	for range e.news {
		for name, ok := e.next(); ok && ctx.Err() == nil; name, ok = e.next() {
			if err := e.send(ctx, name); err != nil {
				e.mu.Lock()
				e.fail(name, err)
				e.mu.Unlock()
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if left := e.failed.count + len(e.queue); left > 0 {
		e.logger.Warn("traces not sent", "runs", left)
	}
}

// next takes the first context of the queue.
func (e *Exporter) next() (name string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return "", false
	}
	name = e.queue[0]
	e.queue = e.queue[1:]
	return name, true
}

func (e *Exporter) send(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	t, err := Of(ctx, journal.In(e.log, name), e.options())
	switch {
	case errors.Is(err, ErrNoRun), errors.Is(err, store.ErrNoContext): // it was refused, or pruned since
		return nil
	case err != nil:
		return err
	}
	return e.sender.Send(ctx, t)
}

// fail counts a run that was not sent, and logs that once in a while. The caller holds mu.
func (e *Exporter) fail(name string, err error) {
	e.failed.count++
	if time.Since(e.failed.logged) < failureEvery {
		return
	}
	attrs := []any{"runs", e.failed.count, "error", err}
	if name != "" {
		attrs = append(attrs, "context", name)
	}
	e.logger.Warn("traces not sent", attrs...)
	e.failed = failures{logged: time.Now()}
}
