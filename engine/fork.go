package engine

import (
	"context"
	"errors"
	"fmt"

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
		Journal: []store.Entry{{Event: eventFork, Data: string(store.EncodeJSON(forkEvent{from, at}))}},
	})
	return at, err
}

// disown lets a fork's call go on without the context that its delegate runs in,
// which is that of the call that it was forked from. It tells whether the delegate,
// which begins anew, would run again what must not run twice.
func (l *loop) disown(ctx context.Context, r *Record) (twice bool, err error) {
	if r.Child == "" || r.Status.Settled() {
		return false, nil
	}
	child, err := ownChild(ctx, l.runner.Log, l.context, r)
	if child != "" || err != nil {
		return false, err
	}
	if twice, err = ranOnce(ctx, l.runner.Log, r.Child); err != nil {
		return false, err
	}
	if r.Status == Waiting {
		r.Status, r.At = Blocked, 0 // it begins anew, and reads anew
	}
	if twice {
		r.WaitingOn, r.Reason = nil, begunOnce(r.Child)
	}
	r.Child = ""
	return twice, nil
}

// ranOnce tells whether something has run in the context of a delegate, or in those
// of its own delegates, that must not run twice.
func ranOnce(ctx context.Context, log store.Log, name string) (bool, error) {
	seen := map[string]bool{}
	for names := []string{name}; len(names) > 0; {
		name, names = names[0], names[1:]
		records, err := Records(ctx, log, name)
		if err != nil && !errors.Is(err, store.ErrNoContext) {
			return false, err
		}
		seen[name] = true
		for _, r := range records {
			if r.Once {
				return true, nil
			}
			if r.Child != "" && !seen[r.Child] {
				names = append(names, r.Child)
			}
		}
	}
	return false, nil
}

// ownChild is the context that the delegate of a context's call goes on in, empty
// if there is none.
func ownChild(ctx context.Context, log store.Log, name string, r *Record) (string, error) {
	if r.Child == "" || r.Status.Settled() {
		return "", nil
	}
	origin, ok, err := originOf(ctx, log, r.Child)
	if err != nil || ok && origin.Parent != name {
		return "", err
	}
	return r.Child, around(ctx, log, name, r.Child)
}

// around refuses a delegate's context that is the one it was called from, or lies around
// that one: whoever goes down to it would never come to an end.
func around(ctx context.Context, log store.Log, name, child string) error {
	for range MaxDepth + 1 {
		if name == child {
			return &DamagedError{name, "a call in it names as its delegate's a context that is around it"}
		}
		origin, _, err := originOf(ctx, log, name)
		if err != nil || origin.Parent == "" {
			return err
		}
		name = origin.Parent
	}
	return &DamagedError{name, "the contexts around it go in a circle"}
}

// restart lets the delegate of a call that runs again begin anew, where it has not
// begun or is that of the call that this one was forked from. If that would run
// again what must not run twice, the call is in doubt.
func (t *tick) restart(ctx context.Context, r *Record) (twice bool, err error) {
	if r.Child == "" {
		return false, nil
	}
	origin, ok, err := originOf(ctx, t.runner.Log, r.Child)
	if err != nil || ok && origin.Parent == t.context {
		return false, err
	}
	twice, err = ranOnce(ctx, t.runner.Log, r.Child)
	if twice { // and what there is by then is read
		r.Status, r.Reason, r.At, r.Reads, r.Hold, r.Error = InDoubt, begunOnce(r.Child), 0, nil, nil, nil
	}
	r.Child = ""
	return twice, err
}

// begunOnce is the reason of a call that is in doubt for what its delegate has begun.
func begunOnce(child string) string {
	return fmt.Sprintf("its delegate, in context %s, has begun what must not run twice", child)
}
