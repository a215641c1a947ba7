package sqlite

import (
	"context"
	"testing"
	"time"

	"obelus/store"
)

// TestAwait_OtherProcess holds that an append through another connection, as of another process, is
// heard of well before the poll, where the system announces changes of files.
func TestAwait_OtherProcess(t *testing.T) {
	path := newPath(t)
	one, other := open(t, path, Options{}), open(t, path, Options{})
	one.news.poll = time.Hour
	before := add(t, one, written("†s.a", "1")).N
	heard := make(chan int64, 1)
	go func() {
		n, err := one.Await(t.Context(), before)
		if err != nil {
			t.Error(err)
		}
		heard <- n
	}()
	// The watch begins with the first wait. Until then nothing is announced, and the poll hears.
	for watches := false; !watches; time.Sleep(time.Millisecond) {
		one.news.mu.Lock()
		watches = one.news.watcher != nil && one.news.changed != nil
		one.news.mu.Unlock()
	}
	a, err := other.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "e"}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := <-heard; n != a.N {
		t.Errorf("it heard of %d, not of %d", n, a.N)
	}
	one.news.close()
	one.news.poll = time.Millisecond
	go func() {
		if _, err := other.Append(context.Background(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "e"}}}); err != nil {
			t.Error(err)
		}
	}()
	if n, err := one.Await(t.Context(), a.N); n <= a.N || err != nil {
		t.Errorf("by the poll alone it heard of %d, %v", n, err)
	}
}
