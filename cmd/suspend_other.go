//go:build !unix

package cmd

import "obelus/store/sqlite"

// suspendBetweenCommits does nothing where no process can be stopped by a terminal.
func suspendBetweenCommits(*sqlite.Log) (end func()) { return func() {} }
