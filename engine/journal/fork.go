package journal

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"obelus/engine/plan"
	"obelus/store"
)

// EventFork is the event with which a fork is made; data is a forkEvent. In the fork's own journal
// only records of calls that are held again come before it.
const EventFork = "fork"

// forkEvent is the origin of a fork in its journal.
type forkEvent struct {
	From string `json:"from"`
	At   int64  `json:"at"`
}

// Fork makes a context that shares another one's log up to a seq, or with 0 all of it, and returns
// the seq. A run that was under way there is interrupted in the fork, and can be resumed; calls and
// plans that had been decided about and have not settled are held again. The error is a
// [*store.ForkError], [store.ErrExists] or [store.ErrNoContext].
func Fork(ctx context.Context, log store.ReadAppender, from string, at int64, name string) (int64, error) {
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
	return at, Amend(ctx, In(log, from), func(n int64) error {
		standing, held, err := readForked(ctx, log, from, at)
		if err != nil {
			return err
		}
		b := store.Batch{Context: name, ExpectSeq: store.AnySeq, ExpectN: n, Create: &store.Origin{Fork: from, At: at}, Standing: standing}
		for _, r := range held {
			b.Journal = append(b.Journal, r.Entry())
		}
		b.Journal = append(b.Journal, store.Entry{Event: EventFork, Data: string(store.EncodeJSON(forkEvent{from, at}))})
		_, err = log.Append(ctx, b)
		return err
	})
}

// readForked returns the standing with which a fork of a context begins, and the records of calls
// that are held again or in doubt there. No server goes on with its run by itself. Calls of a run
// that has ended are not read, so that a fork costs the same however long the log is. Both are nil
// where the log refuses the fork.
func readForked(ctx context.Context, log store.Reader, from string, at int64) (*store.Standing, []Record, error) {
	cut := &Truncated{log, map[string]End{}}
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: from, Seq: at + 1}) {
		if err != nil {
			return nil, nil, err
		}
		if cut.Ends[from] = (End{entry.N - 1, at}); entry.N == 1 {
			return nil, nil, nil
		}
		break
	}
	c := In(cut, from)
	last, err := c.LastRun(ctx)
	var held, records []Record
	if err == nil && !last.Status.Finished() {
		last.Held = last.Event.IsLazy() && !last.Over
		records, held, err = c.recordsOfFork(ctx)
	}
	if errors.As(err, new(*DamagedError)) {
		return nil, nil, nil // what can't be read is reported by those who read the fork
	}
	standing := last.Standing(records)
	if last.Status == RunRunning {
		standing.Status = string(RunInterrupted)
	}
	standing.Due = time.Time{}
	return &standing, held, err
}

// recordsOfFork returns the calls of the context as a fork of it has them, and those among them
// that differ.
func (c Context) recordsOfFork(ctx context.Context) (records, changed []Record, err error) {
	if records, err = c.Records(ctx); err != nil {
		return nil, nil, err
	}
	if changed, err = c.undecided(ctx, records, math.MaxInt64); err != nil {
		return nil, nil, err
	}
	return ReplaceRecords(records, changed), changed, nil
}

// ReplaceRecords puts records in the place of those of the same calls.
func ReplaceRecords(records, changed []Record) []Record {
	for _, r := range changed {
		i := slices.IndexFunc(records, func(old Record) bool { return old.Call == r.Call })
		records[i] = r
	}
	return records
}

// RanNonIdempotent reports whether a call that must not run twice has run in the context, or in a
// context of one of its delegates, however deep.
func (c Context) RanNonIdempotent(ctx context.Context) (bool, error) {
	seen := map[string]bool{}
	for names := []string{c.Name}; len(names) > 0; {
		c.Name, names = names[0], names[1:]
		records, err := c.Records(ctx)
		if err != nil && !errors.Is(err, store.ErrNoContext) {
			return false, err
		}
		seen[c.Name] = true
		for _, r := range records {
			if r.NotIdempotent {
				return true, nil
			}
			if r.Child != "" && !seen[r.Child] {
				names = append(names, r.Child)
			}
		}
	}
	return false, nil
}

// OwnChild returns the context of a call's delegate as long as the call has not settled, and "" if
// there is none or it belongs to the context that this one was forked from.
func (c Context) OwnChild(ctx context.Context, r *Record) (string, error) {
	if r.Child == "" || r.Status.Settled() {
		return "", nil
	}
	origin, ok, err := c.Sibling(r.Child).OriginOf(ctx)
	if err != nil || ok && origin.Parent != c.Name {
		return "", err
	}
	for range plan.MaxDepth + 1 { // a walk down to a context that encloses this one would never end
		if c.Name == r.Child {
			return "", &DamagedError{c.Name, "a call in it names as its delegate's a context that is around it"}
		}
		origin, _, err := c.OriginOf(ctx)
		if err != nil || origin.Parent == "" {
			return r.Child, err
		}
		c.Name = origin.Parent
	}
	return "", &DamagedError{c.Name, "the contexts around it go in a circle"}
}
