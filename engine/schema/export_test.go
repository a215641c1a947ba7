package schema

import (
	"time"
)

// BoundCheckTime lets checks against schemas take so long, until it is undone.
func BoundCheckTime(d time.Duration) (undo func()) {
	before := maxCheckTime
	maxCheckTime = d
	return func() { maxCheckTime = before }
}
