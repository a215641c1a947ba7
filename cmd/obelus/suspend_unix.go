//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"obelus/store/sqlite"
)

// suspendWithin is how long a commit may take until the process stops in its midst.
const suspendWithin = 10 * time.Second

// suspendBetweenCommits has Ctrl-Z stop the process when it is at no commit, until end is
// called: SQLite's lock for writing would keep everybody else from appending for as long as it
// is stopped.
func suspendBetweenCommits(log *sqlite.Log) (end func()) {
	signals, continued := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTSTP)
	signal.Notify(continued, syscall.SIGCONT)
	stop := func() {
		select { // of a stop that was not ours
		case <-continued:
		default:
		}
		if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
			<-continued // the signal may take a moment to stop all threads
		}
	}
	go func() {
		for range signals {
			ctx, cancel := context.WithTimeout(context.Background(), suspendWithin)
			if err := log.Between(ctx, stop); err != nil { // it is read-only, closed, or takes long
				stop()
			}
			cancel()
		}
	}()
	return func() {
		signal.Stop(signals)
		signal.Stop(continued)
		close(signals)
	}
}
