package history

import (
	"cmp"
	"context"
	"errors"

	"obelus/engine/journal"
	"obelus/store"
)

// Summary describes a context for lists (cmd/SURFACE.md, contexts).
type Summary struct {
	Context string            `json:"context"`
	Status  journal.RunStatus `json:"status,omitempty"` // of its newest run
	// The run was interrupted as its host stopped or died: a server resumes it.
	Stopped bool   `json:"stopped,omitempty"`
	Plan    string `json:"plan,omitempty"`
	// The context whose delegate it is, or from which it was forked.
	Parent   string `json:"parent,omitempty"`
	At       any    `json:"at,omitempty"` // the parent's call, or for a fork the seq
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"` // size of the messages as JSON
	Created  string `json:"created"`
	Updated  string `json:"updated"`
	// Why the status of its newest run can't be read.
	Error string `json:"error,omitempty"`
}

// Summarize describes a context. With a [*journal.DamagedError] it returns all that can be read, so
// that one damaged context need not hide the others.
func Summarize(ctx context.Context, log store.Reader, info store.ContextInfo) (Summary, error) {
	run, err := journal.In(log, info.Context).CurrentRun(ctx)
	var damaged *journal.DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return Summary{}, err
	}
	bytes, sizeErr := log.Size(ctx, info.Context)
	s := Summary{
		Context: info.Context, Status: run.Status, Stopped: run.Stopped, Plan: run.Plan,
		Messages: info.Messages, Bytes: bytes, Created: store.FormatDate(info.Created), Updated: store.FormatDate(info.Updated),
	}
	if damaged != nil {
		s.Status, s.Error = "", damaged.Error()
	}
	switch o := info.Origin; {
	case o.Parent != "":
		s.Parent, s.At = o.Parent, o.Call
	case o.Fork != "":
		s.Parent, s.At = o.Fork, o.At
	}
	return s, cmp.Or(sizeErr, err)
}
