//go:build unix

package host

import (
	"context"
	"strconv"
	"syscall"
	"testing"
	"time"

	"obelus/engine"
)

// TestDeadlineWithinTheHost holds that a call does not succeed after its time,
// whatever it was at last, and that a large table is read and filled in time.
func TestDeadlineWithinTheHost(t *testing.T) {
	names := map[string]any{}
	for i := range 500_000 {
		names[strconv.Itoa(i)] = true
	}
	h, err := Open(Config{
		Objects: map[string]any{"wait": func() { time.Sleep(100 * time.Millisecond) }},
		FS: project(map[string]string{"activities/a.lua": `
			Activity.register("waits", { timeout = 0.05 }, function() wait() return 1 end)
			Activity.register("fills", { timeout = 0.05 }, function(call) for name in pairs(call.names) do return name end end)
			Activity.register("returns", { timeout = 1.5 }, function(call)
				local t = {}
				for i = 1, 300000 do t["n" .. i] = i end
				while os.clock() < 1.49 do end
				return t
			end)`}),
	})
	if err != nil {
		t.Fatal(err)
	}
	room := 200 * time.Millisecond
	if raceEnabled { // everything takes several times as long
		room = time.Second
	}
	for name, want := range map[string]time.Duration{"waits": 50 * time.Millisecond, "fills": 50 * time.Millisecond, "returns": 1500 * time.Millisecond} {
		in := engine.Invocation{Call: map[string]any{"names": names}, Attempt: 1}
		began, worked := time.Now(), cpuTime(t)
		_, err := h.Generation().Registry().Activities[name].Activity.Run(context.Background(), in)
		took := min(time.Since(began), cpuTime(t)-worked) // the machine may have been busy with something else
		if err == nil || err.Error() != "timed out after "+want.String() || took > want+room {
			t.Errorf("%s: after %s %v", name, took, err)
		}
	}
}

// cpuTime is the processor's time that this process has taken.
func cpuTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
