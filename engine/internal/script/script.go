// Package script defines how package engine is driven: a live run by its calls themselves, a replay
// by the log of the recorded run. It is internal, and so the exported method RunRecorded of
// engine.Runner, which takes a [Script], is of use to package engine/replay alone: a program that
// embeds the engine replays a run by replay.Run.
package script

import (
	"context"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Script drives the runs of one context and of its delegates. Contexts and calls are given by
// name, as the journal has them. A script belongs to one run at a time.
type Script interface {
	// Recorded reports whether the run is replayed: its calls begin and settle one by one, in
	// the order of the record.
	Recorded() bool

	// Log is the log of the recorded run; nil for a live one.
	Log() store.Reader

	// Record returns a call's record in the recorded run.
	Record(ctx context.Context, name, call string) (r journal.Record, ok bool, err error)

	// Span returns when a call began and settled; zero for a live run.
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

	// Child returns the context of a call's delegate; empty if the run is live, or the call had
	// none.
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

// Live is the script of a run that is not replayed.
type Live struct{}

// Recorded implements [Script].
func (Live) Recorded() bool { return false }

// Log implements [Script].
func (Live) Log() store.Reader { return nil }

// Record implements [Script].
func (Live) Record(context.Context, string, string) (r journal.Record, ok bool, err error) {
	return r, false, nil
}

// Span implements [Script].
func (Live) Span(string, string) (none journal.Span) { return none }

// Timeline implements [Script].
func (Live) Timeline(context.Context, string) (*journal.Timeline, error) {
	return &journal.Timeline{}, nil
}

// Superseded implements [Script].
func (Live) Superseded(context.Context, string) (journal.Superseded, error) { return nil, nil }

// ErrorSeq implements [Script].
func (Live) ErrorSeq(context.Context, string, string) (int64, error) { return 0, nil }

// BeginTick implements [Script].
func (Live) BeginTick(context.Context, *store.View, string, int) error { return nil }

// Inject implements [Script].
func (Live) Inject(context.Context, *store.View, string, journal.Position) error { return nil }

// Child implements [Script].
func (Live) Child(context.Context, string, string) (string, error) { return "", nil }

// Request implements [Script].
func (Live) Request(_ string, request *plan.Request) *plan.Request { return request }

// RunsInside implements [Script].
func (Live) RunsInside(context.Context, string, string) bool { return true }

// Written implements [Script].
func (Live) Written(context.Context, string, journal.Record) ([]store.Path, plan.ValuesByPath, error) {
	return nil, nil, nil
}
