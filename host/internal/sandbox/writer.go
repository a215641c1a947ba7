package sandbox

import (
	"io"
	"sync"
)

// LockWriter returns a writer to w that may be used by several goroutines at once.
func LockWriter(w io.Writer) io.Writer { return &lockedWriter{w: w} }

// lockedWriter keeps the lines of concurrent scripts separate.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(text)
}
