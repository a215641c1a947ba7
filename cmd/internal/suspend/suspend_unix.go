//go:build unix

package suspend

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

// BetweenCommits has Ctrl-Z stop the process when it is at no commit, until end is
// called: SQLite's lock for writing would keep everybody else from appending for as long as it
// is stopped.
func BetweenCommits(log *sqlite.Log) (end func()) {
	if signal.Ignored(syscall.SIGTSTP) { // as under nohup: it is not to be stopped
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTSTP)
	go func() {
		for range signals {
			ctx, cancel := context.WithTimeout(context.Background(), suspendWithin)
			if err := log.Between(ctx, stopProcess); err != nil { // it is read-only, closed, or takes long
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
