// Package script defines what package engine answers the calls of a recorded run from. It is
// internal, and so the exported method RunRecorded of engine.Runner, which takes a [Script], is of
// use to package engine/replay alone: a program that embeds the engine replays a run by replay.Run.
package script

import (
	"context"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Script is the record of the runs of one context and of its delegates. Contexts and calls are
// given by name, as the journal has them. A script belongs to one run at a time.
type Script interface {
	// Log is the log of the recorded run.
	Log() store.Reader

	// Record returns a call's record in the recorded run.
	Record(ctx context.Context, name, call string) (r journal.Record, ok bool, err error)

	// Span returns when a call began and when it settled, each 0 if it did not.
	Span(name, call string) journal.Span

	// Timeline returns when things happened in a context.
	Timeline(ctx context.Context, name string) (*journal.Timeline, error)

	// Superseded returns the messages of a context that are superseded, by their seqs, with the
	// position in the journal since which each is.
	Superseded(ctx context.Context, name string) (journal.Superseded, error)

	// ErrorSeq returns the seq of the message that reports the failure of a call, 0 if the run
	// reports none.
	ErrorSeq(ctx context.Context, name, call string) (int64, error)

	// BeginTick appends the foreign messages that the recorded run found as a tick began, and
	// refreshes the view.
	BeginTick(ctx context.Context, view *store.View, name string, tick int) error

	// Inject stages the foreign messages that were there at a position.
	Inject(ctx context.Context, view *store.View, name string, at journal.Position) error

	// Child returns the context of a call's delegate; empty if the call had none.
	Child(ctx context.Context, name, call string) (string, error)

	// Request returns the request that a delegate runs in a context.
	Request(name string, request *plan.Request) *plan.Request

	// RunsInside reports whether a call gets its result from its delegate's run, and not from
	// the record.
	RunsInside(ctx context.Context, name, call string) bool

	// Written returns the paths to which a recorded call wrote, and the values there. Its error is
	// one of package logerr if the log can't be read.
	Written(ctx context.Context, name string, r journal.Record) ([]store.Path, plan.ValuesByPath, error)
}
