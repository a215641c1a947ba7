package supervise

import (
	"context"
	"log/slog"
	"slices"

	"obelus/engine/journal"
	"obelus/store"
)

// reader reads how runs stand, for tasks that no request caused: it logs errors, unless the
// supervisor is being shut down.
type reader struct {
	ctx    context.Context // ends when the supervisor is shut down
	log    *notifyingLog
	logger *slog.Logger
}

// logError logs an error that no request caused.
func (r *reader) logError(what string, err error, about ...any) {
	if r.ctx.Err() == nil {
		r.logger.Error(what, append(about, "error", err)...)
	}
}

// position returns the newest position of the journal, or 0 before the first.
func (r *reader) position() (int64, error) {
	entry, _, err := store.Newest(r.ctx, r.log, store.JournalFilter{})
	return entry.N, err
}

// rootOf returns the context whose run a context is part of. ok is false if that can't be read.
func (r *reader) rootOf(name string) (root string, ok bool) {
	root, err := journal.In(r.log, name).Root(r.ctx)
	if err != nil {
		r.logError("a run can't be found", err, "context", name)
	}
	return root, err == nil
}

// isTrue asks a question about a context. An error is a no.
func (r *reader) isTrue(name string, of func(journal.Context, context.Context) (bool, error)) bool {
	is, err := of(journal.In(r.log, name), r.ctx)
	if err != nil {
		r.logError("what a context waits for can't be found", err, "context", name)
	}
	return is
}

// hasStatus reports whether a context's run has one of some statuses and may go on by itself.
func (r *reader) hasStatus(name string, statuses ...journal.RunStatus) (bool, error) {
	last, err := journal.In(r.log, name).LastRun(r.ctx)
	return isResumable(last, statuses), err
}

// isResumable reports whether a run has one of some statuses and was not cancelled for good.
func isResumable(last journal.Run, statuses []journal.RunStatus) bool {
	return last.Tick > 0 && slices.Contains(statuses, last.Status) && !last.Unwanted()
}
