//go:build !unix

package suspend

import "obelus/store/sqlite"

// BetweenCommits does nothing where no process can be stopped by a terminal.
func BetweenCommits(*sqlite.Log) (end func()) { return func() {} }
