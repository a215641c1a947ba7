package schema

import (
	"time"
)

// BoundPatience lets checks against schemas take so long, until it is undone.
func BoundPatience(d time.Duration) (undo func()) {
	before := mostPatience
	mostPatience = d
	return func() { mostPatience = before }
}
