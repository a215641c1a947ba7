package budget

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	for _, c := range []struct {
		live, roots, floor uint64
		want               int
	}{
		{1 << 20, 0, 32 << 20, 800}, {8 << 20, 0, 32 << 20, 300}, {8 << 20, 4 << 20, 32 << 20, 200}, {16 << 20, 0, 32 << 20, 100}, {24 << 20, 0, 32 << 20, beyondFloor},
		{100 << 20, 1 << 20, 32 << 20, beyondFloor}, {0, 0, 32 << 20, 800}, {1 << 20, 1 << 20, 0, beyondFloor},
	} {
		if got := percentFor(c.live, c.roots, c.floor); got != c.want {
			t.Errorf("%d in use, floor %d: %d percent, not %d", c.live, c.floor, got, c.want)
		}
	}
}

// TestKeepHeap: the heap may grow to its floor, and beyond that as Go has it. It goes for
// a whole process, and so has one of its own.
func TestKeepHeap(t *testing.T) {
	if os.Getenv("OBELUS_TEST_HEAP") == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKeepHeap$")
		again.Env = append(os.Environ(), "OBELUS_TEST_HEAP=1", "GOGC=")
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%s", err, out)
		}
		return
	}
	const ours = 77 // which only the test sets
	becomes := func(is func(percent int) bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			runtime.GC()
			now := debug.SetGCPercent(ours)
			if now != ours && is(now) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d percent", now)
			}
		}
	}
	const floor = 64 << 20
	KeepHeap(floor)
	if now := debug.SetGCPercent(ours); now != 100*floor/minHeap {
		t.Errorf("%d percent at first", now)
	}
	becomes(func(percent int) bool { return percent > 200 })
	held := make([]byte, floor)
	becomes(func(percent int) bool { return percent == beyondFloor })
	runtime.KeepAlive(held)
	becomes(func(percent int) bool { return percent > 200 })
}
