package engine

import (
	"time"

	"obelus/engine/internal/bounds"
)

// WithoutChance makes the pauses between attempts as long as they are on average.
func (r *Runner) WithoutChance() *Runner {
	r.jitter = func(d time.Duration) time.Duration { return d / 2 }
	return r
}

// BoundEdges gives the graphs of plans another bound, until it is undone.
func BoundEdges(n int) (undo func()) {
	before := bounds.MaxEdges
	bounds.MaxEdges = n
	return func() { bounds.MaxEdges = before }
}

// BoundNested has the delegates of a run start at most n delegates, until it is undone.
func BoundNested(n int) (undo func()) {
	before := bounds.MaxNested
	bounds.MaxNested = n
	return func() { bounds.MaxNested = before }
}

// BoundWriters has so many writers of one path wired one by one, until it is undone.
func BoundWriters(n int) (undo func()) {
	before := bounds.ManyWriters
	bounds.ManyWriters = n
	return func() { bounds.ManyWriters = before }
}

// GatheringTime is gatheringTime.
const GatheringTime = gatheringTime
