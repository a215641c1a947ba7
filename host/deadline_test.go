package host

import (
	"context"
	"strconv"
	"testing"
	"time"

	"obelus/engine/plan"
)

// TestDeadline_WithinHost holds that a call does not succeed after its time,
// whatever it was at last, and that a large table is read and filled in time.
func TestDeadline_WithinHost(t *testing.T) {
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
	for name, want := range map[string]time.Duration{"waits": 50 * time.Millisecond, "fills": 50 * time.Millisecond, "returns": 1500 * time.Millisecond} {
		in := plan.Invocation{Call: map[string]any{"names": names}, Attempt: 1}
		endsAfter(t, name, want, func() error {
			_, err := h.Generation().Registry().Activities[name].Activity.Run(context.Background(), in)
			return err
		})
	}
}

// endsAfter holds f to its time-out, and to end soon after it in one of three tries: a
// busy machine is late now and then, and what does not end with its call is so always.
func endsAfter(t *testing.T, what string, timeout time.Duration, f func() error) {
	t.Helper()
	most := timeout + 200*time.Millisecond
	if raceEnabled { // everything takes several times as long
		most = timeout + time.Second
	}
	var took []time.Duration
	for range 3 {
		began := time.Now()
		if err := f(); err == nil || err.Error() != "timed out after "+timeout.String() {
			t.Errorf("%s: %v", what, err)
			return
		}
		if took = append(took, time.Since(began)); took[len(took)-1] <= most {
			return
		}
	}
	t.Errorf("%s takes %v", what, took)
}
