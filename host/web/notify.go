package web

import (
	"context"
	"errors"
	"sync"

	"obelus/store"
)

// subscribers notifies the followers of contexts of news.
type subscribers struct {
	mu       sync.Mutex
	channels map[string]map[chan struct{}]bool // by context
}

func newSubscribers() *subscribers {
	return &subscribers{channels: map[string]map[chan struct{}]bool{}}
}

// subscribe returns a channel that holds a token whenever there is news of a context, until leave
// is called.
func (t *subscribers) subscribe(name string) (news chan struct{}, leave func()) {
	news = make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.channels[name] == nil {
		t.channels[name] = map[chan struct{}]bool{}
	}
	t.channels[name][news] = true
	return news, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.channels[name], news); len(t.channels[name]) == 0 {
			delete(t.channels, name)
		}
	}
}

// notify signals the subscribers of a context.
func (t *subscribers) notify(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for news := range t.channels[name] {
		signal(news)
	}
}

// signal leaves a token in a channel, unless it holds one.
func signal(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

// notifyingLog is a log that notifies subscribers of each append, and keeps the leases that could
// not be given back.
type notifyingLog struct {
	store.Log
	subscribers *subscribers
	heldLeases  sync.Map // epochs of leases that could not be released, by context
}

// Append appends a batch and notifies the context's subscribers.
func (n *notifyingLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	appended, err := n.Log.Append(ctx, b)
	switch {
	case err == nil && len(b.Messages)+len(b.Journal) > 0:
		n.subscribers.notify(b.Context)
	case isTemporary(err):
		if b.Lease != nil && b.Lease.Epoch != 0 && b.Lease.For <= 0 {
			n.heldLeases.Store(b.Context, b.Lease.Epoch)
		}
		err = &unwritable{err}
	}
	return appended, err
}

// releaseLease releases the lease of a context if its run could not. If that fails again, it is
// kept.
func (n *notifyingLog) releaseLease(ctx context.Context, name string) {
	if epoch, ok := n.heldLeases.LoadAndDelete(name); ok {
		_, _ = n.Append(ctx, store.Batch{Context: name, ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: epoch.(int64)}})
	}
}

// unwritable is the error of a log to which nothing can be appended for now, as on a full disk.
type unwritable struct{ err error }

func (e *unwritable) Error() string { return e.err.Error() }

func (e *unwritable) Unwrap() error { return e.err }

func isUnwritable(err error) bool {
	var e *unwritable
	return errors.As(err, &e)
}

// isTemporary reports whether an error of a log, or of reading a file, may pass.
func isTemporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}
