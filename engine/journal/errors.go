package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"obelus/store"
)

// DamagedError is a journal that is not as a run writes it, as after an edit by
// hand.
type DamagedError struct {
	Context string
	What    string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the journal of context %s is damaged: %s", e.Context, e.What)
}

// Class implements the interface of [store.ClassOf].
func (e *DamagedError) Class() store.Class { return store.Damaged }

func damaged(entry store.Entry, format string, args ...any) error {
	return &DamagedError{entry.Context, fmt.Sprintf("entry %d ", entry.N) + fmt.Sprintf(format, args...)}
}

// UnknownCall returns the [*DamagedError] of an entry about a call that no plan has.
func UnknownCall(entry store.Entry) error {
	return damaged(entry, "is about call %s, which no plan of the context has", entry.Call)
}

// unread returns a [*DamagedError] for an entry whose data could not be decoded.
func unread(entry store.Entry, err error) error {
	var form *json.UnmarshalTypeError
	switch {
	case entry.Data == "":
		return damaged(entry, "holds nothing")
	case errors.As(err, &form):
		return damaged(entry, "holds an unexpected %s", form.Value)
	}
	return damaged(entry, "can't be read: %s", err)
}

// EndsAfter returns an error if the last messages of the context are missing: new ones would take
// their seqs. Its newest entry was read before its head.
func (c Context) EndsAfter(ctx context.Context, newest store.Entry, head int64) error {
	if newest.Seq > head {
		return c.unlessPruned(ctx, newest.N, damaged(newest, "was written when there were %d messages, and now there are %d", newest.Seq, head))
	}
	return nil
}

// unlessPruned returns the damage that several reads show together, if an entry of the context that
// was read first is still there. Else the context was pruned in between, and perhaps made anew,
// which gives [store.ErrNoContext]: no other entry ever has the position of one that was pruned.
func (c Context) unlessPruned(ctx context.Context, n int64, damage error) error {
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, After: n - 1, At: n}) {
		if err != nil || entry.N == n {
			return cmp.Or(err, damage)
		}
	}
	return c.PrunedMeanwhile()
}

// PrunedMeanwhile returns the [store.ErrNoContext] of a context that was pruned while it was read.
func (c Context) PrunedMeanwhile() error {
	return fmt.Errorf("%w: %s, which was pruned while it was read", store.ErrNoContext, c.Name)
}

// NoSuchCallError names a call that does not exist, or whose status does not allow the request.
type NoSuchCallError struct {
	Message string
	Absent  bool // there is no such call at all
	Hint    Hint // how to reach the thing that was asked for; may be zero
}

func (e *NoSuchCallError) Error() string { return e.Message }

// Class implements the interface of [store.ClassOf].
func (e *NoSuchCallError) Class() store.Class {
	if e.Absent {
		return store.NotFound
	}
	return store.Refused
}

// Hint is advice that goes with an error. A program puts it into the words of its own commands.
type Hint struct {
	Fork     string   // fork this context, at At, and repeat the request in the fork
	At       int64    // the seq to fork at; 0 for the newest
	Contexts []string // repeat the request for one of these contexts
	Plan     string   // decide about the plan that waits in this context
}

// SeveralContexts returns a [*NoSuchCallError] for a decision that may be meant for any of several
// contexts, with those as its hint.
func SeveralContexts(what string, contexts []string) error {
	return &NoSuchCallError{Message: what, Hint: Hint{Contexts: contexts}}
}

// CorrectionError is a correction, or a result that a person gives, that the call's tool
// does not take.
type CorrectionError struct {
	Call string
	Err  error
}

func (e *CorrectionError) Error() string { return "call " + e.Call + ": " + e.Err.Error() }

// Class implements the interface of [store.ClassOf].
func (e *CorrectionError) Class() store.Class { return store.Refused }

func (e *CorrectionError) Unwrap() error { return e.Err }
