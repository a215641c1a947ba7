//go:build unix

// Package suspend keeps Ctrl-Z from stopping the process in the middle of a commit.
package suspend

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"obelus/store/sqlite"
)

// suspendWithin is the time after which the process is stopped even within a commit.
const suspendWithin = 10 * time.Second

// BetweenCommits has Ctrl-Z stop the process only between two commits, until end is called: while a
// process is stopped with SQLite's lock, no other process can append.
func BetweenCommits(log *sqlite.Log) (end func()) {
	if signal.Ignored(syscall.SIGTSTP) { // as under nohup
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTSTP)
	go func() {
		for range signals {
			ctx, cancel := context.WithTimeout(context.Background(), suspendWithin)
			// The log is read-only or closed, or the commit takes long.
			if err := log.Between(ctx, stopProcess); err != nil {
				stopProcess()
			}
			cancel()
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
