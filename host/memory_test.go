package host

import (
	"runtime/debug"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/host/internal/budget"
)

// TestMemory_OfStoppedScriptIsGivenBack holds that calls which are stopped for their memory,
// one after the other, do not add up, and that what they took is given back afterwards.
func TestMemory_OfStoppedScriptIsGivenBack(t *testing.T) {
	freed := make(chan struct{}, 10)
	budget.FreeMemory = func() {
		debug.FreeOSMemory()
		freed <- struct{}{}
	}
	t.Cleanup(func() { budget.FreeMemory = debug.FreeOSMemory })
	g := open(t, map[string]string{
		"obelus.lua":       `return { timeout = 60, limits = { memory = "128MB" } }`,
		"activities/a.lua": `Activity.register("a", function() local t = {} for i = 1, 1e9 do t = { t, ("x"):rep(1000) .. i } end end)`,
	})
	before, _ := budget.HeapSize()
	for range 3 {
		if _, err := runA(g, plan.Invocation{}); err == nil || !strings.Contains(err.Error(), "grown too much") {
			t.Fatal(err)
		}
		if now, _ := budget.HeapSize(); now > before+512<<20 {
			t.Errorf("the heap is at %d MB, %d MB more than before", now>>20, (now-before)>>20)
		}
	}
	for { // the last time, of several
		<-freed
		if now, _ := budget.HeapSize(); now < before+64<<20 {
			return
		}
	}
}
