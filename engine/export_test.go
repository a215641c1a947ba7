package engine

import "time"

// WithoutChance makes the pauses between attempts as long as they are on average.
func (r *Runner) WithoutChance() *Runner {
	r.jitter = func(d time.Duration) time.Duration { return d / 2 }
	return r
}

// BoundEdges gives the graphs of plans another bound, until it is undone.
func BoundEdges(n int) (undo func()) {
	before := mostEdges
	mostEdges = n
	return func() { mostEdges = before }
}

// BoundPatience lets checks against schemas take so long, until it is undone.
func BoundPatience(d time.Duration) (undo func()) {
	before := mostPatience
	mostPatience = d
	return func() { mostPatience = before }
}

// BoundEvaluation lets an expression take so long, until it is undone.
func BoundEvaluation(d time.Duration) (undo func()) {
	before := maxEvaluation
	maxEvaluation = d
	return func() { maxEvaluation = before }
}

// BoundWriters has so many writers of one path wired one by one, until it is undone.
func BoundWriters(n int) (undo func()) {
	before := manyWriters
	manyWriters = n
	return func() { manyWriters = before }
}
