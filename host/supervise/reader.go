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

// rootOf returns the context whose run a context is part of.
func (r *reader) rootOf(name string) (string, error) {
	return journal.In(r.log, name).Root(r.ctx)
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
