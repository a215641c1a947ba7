package cmd

import (
	"context"
	"fmt"
	"os"
	"sync"

	"obelus/store"
	"obelus/store/sqlite"
)

// asMortal in the environment makes a program of the test binary end at one
// commit; see mortals.
const asMortal = "OBELUS_TEST_MORTAL"

// mortal is a log whose process is killed just before or just after one of the
// appends that are made by all processes that share a count.
type mortal struct {
	store.Log
	mu    sync.Mutex
	count *os.File // holds a byte for each append so far
	at    int64
	after bool
}

// point names a commit for mortals: the n-th that the file counts.
func point(n int64, after bool, count string) string {
	return fmt.Sprintf("%s=%d %t %s", asMortal, n, after, count)
}

// mortals makes logs mortal at a point.
func mortals(at string) func(*sqlite.Log) store.Log {
	var l mortal
	var count string
	_, err := fmt.Sscanf(at, "%d %t %s", &l.at, &l.after, &count)
	if err == nil {
		l.count, err = os.OpenFile(count, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	}
	if err != nil {
		panic(err)
	}
	return func(log *sqlite.Log) store.Log {
		l.Log = log
		return &l
	}
}

// Append implements [store.Log].
func (l *mortal) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	last := l.isLast()
	if last && !l.after {
		die()
	}
	appended, err := l.Log.Append(ctx, b)
	if last {
		die()
	}
	return appended, err
}

func (l *mortal) isLast() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.count.Write([]byte{'.'}); err != nil {
		panic(err)
	}
	info, err := l.count.Stat()
	if err != nil {
		panic(err)
	}
	return info.Size() == l.at
}

// die ends the process as kill -9 does.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}
