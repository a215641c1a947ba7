package web

import (
	"context"
	"errors"
	"sync"

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

// isTemporary tells of an error of a log, or of reading a file, that may pass.
func isTemporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}
