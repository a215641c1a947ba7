package engine

import (
	"context"

	"obelus/store"
)

// eventFork is where a fork leaves the context that it was made of.
const eventFork = "fork"

// forkEvent is what the journal of a fork tells of it.
type forkEvent struct {
	From string `json:"from"`
	At   int64  `json:"at"`
}

// Fork makes a context that shares another one's log up to a seq, or with 0 all
// of it. What was running there is as if its process had died: it can be
// resumed in the fork. It gives the seq. Its error is a [*store.ForkError],
// [store.ErrExists] or [store.ErrNoContext].
func Fork(ctx context.Context, log store.Log, from string, at int64, name string) (int64, error) {
	if err := store.CheckContext(name); err != nil {
		return 0, err
	}
	if at == 0 {
		head, err := log.Head(ctx, from)
		if err != nil {
			return 0, err
		}
		at = head
	}
	_, err := log.Append(ctx, store.Batch{
		Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{Fork: from, At: at},
		Journal: []store.Entry{{Event: eventFork, Data: text(forkEvent{from, at})}},
	})
	return at, err
}
