package budget

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// TestAdmit_WaitsForMemory holds that while the process holds more than it may one call
// after the other is admitted, and all of them at once when it does not.
func TestAdmit_WaitsForMemory(t *testing.T) {
	heapIsKept.Store(true)
	t.Cleanup(func() { heapIsKept.Store(false) })
	held := make([]byte, 64<<20)
	heapSeenAt.Store(-int64(time.Hour)) // what was seen of the heap before does not count
	const most = 32 << 20
	first, ok := Admit(t.Context(), most)
	if !ok {
		t.Fatal("a call alone was not admitted")
	}
	second := make(chan func(), 1)
	go func() {
		done, _ := Admit(t.Context(), most)
		second <- done
	}()
	given, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if _, ok := Admit(given, most); ok {
		t.Error("a call whose run was stopped was admitted")
	}
	select {
	case <-second:
		t.Error("two calls were admitted at once")
	default:
	}
	first()
	done := <-second
	runtime.KeepAlive(held)
	held = nil
	for range 3 { // garbage is collected for those that wait
		done, ok := Admit(t.Context(), most)
		if !ok {
			t.Fatal("not admitted though there is room")
		}
		defer done()
	}
	done()
	if n := callsAtWork.Load(); n != 3 {
		t.Errorf("%d calls are at work, want 3", n)
	}
}
