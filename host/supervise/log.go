package supervise

import (
	"context"
	"sync"

	"obelus/store"
)

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
		err = &UnwritableError{err}
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
