package expr

import (
	"time"
)

// BoundEvaluation lets an expression take so long, until it is undone.
func BoundEvaluation(d time.Duration) (undo func()) {
	before := maxEvaluation
	maxEvaluation = d
	return func() { maxEvaluation = before }
}
