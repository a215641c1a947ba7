package cmd

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/memory"
)

// chain is a plan of n calls of which each reads what the one before wrote.
func chain(n int) *plan.Request {
	request := &plan.Request{Context: []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"v0": 1})}}}
	for i := range n {
		request.Calls = append(request.Calls, plan.Source{Call: map[string]any{
			"_tool": "add", "n": fmt.Sprintf("†state.v%d", i), "_outputPath": fmt.Sprintf("†state.v%d", i+1),
		}})
	}
	return request
}

const addActivity = `
Tool.register("add", { properties = { n = { type = "number" } }, required = { "n" } })
Activity.register("add", function(call) return call.n + 1 end)
`

// BenchmarkCallMemory is a small Lua call end to end, in a chain, in memory. In a
// file, beside what a program would do by itself, it is timed by examples/bench.
func BenchmarkCallMemory(b *testing.B) {
	h, err := host.Open(host.Config{FS: fstest.MapFS{"activities/add.lua": {Data: []byte(addActivity)}}})
	if err != nil {
		b.Fatal(err)
	}
	const calls = 100
	request, err := chain(calls).Keep()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		runner := &engine.Runner{Log: memory.New(), Registry: h.Generation().Registry()}
		outcome, err := runner.Run(context.Background(), engine.Start{Context: fmt.Sprint("c", i), Request: request})
		if err != nil || outcome.Status != journal.RunDone {
			b.Fatal(outcome, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*calls), "µs/call")
}
