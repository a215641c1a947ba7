package cmd

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/fstest"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
)

// inLayers is a plan of calls in layers, each of which reads two of the layer
// before.
func inLayers(layers, width int) *plan.Request {
	request := &plan.Request{}
	for l := range layers {
		for i := range width {
			call := map[string]any{"_tool": "add", "n": 1, "_outputPath": fmt.Sprintf("†state.l%d.c%d", l, i)}
			if l > 0 {
				call["n"] = fmt.Sprintf("†(†state.l%d.c%d + †state.l%d.c%d * 0)", l-1, i, l-1, (i+1)%width)
			}
			request.Calls = append(request.Calls, plan.Source{Call: call})
		}
	}
	return request
}

// forInstances is a chain of ten calls for each of n instances.
func forInstances(n int) *plan.Request {
	request := chain(10)
	request.Context = nil
	for i := range n {
		request.Context = append(request.Context, store.Message{
			Type: store.TypeData, Kind: "state", Instance: fmt.Sprint("i", i), Data: store.Some(map[string]any{"v0": i}),
		})
	}
	for _, src := range request.Calls {
		src.Call.(map[string]any)["_instance"] = "*"
	}
	return request
}

// handedOn is n calls handed to a delegate that hands on again, five deep.
func handedOn(n int) *plan.Request {
	request := &plan.Request{}
	for i := range n {
		request.Calls = append(request.Calls, plan.Source{Call: map[string]any{
			"_tool": "hand", "_delegate": "d1", "n": i, "_outputPath": fmt.Sprintf("†state.r%d", i),
		}})
	}
	return request
}

// delegates is a script of delegates: each runs eight calls of its own and hands
// on to the next.
func delegates(deep int) string {
	script := addActivity
	for d := range deep {
		next := `{ _tool = "add", n = "†state.v8", _outputPath = "†r" }`
		if d+1 < deep {
			next = fmt.Sprintf(`{ _tool = "hand", _delegate = "d%d", n = "†state.v8", _outputPath = "†r" }`, d+2)
		}
		script += fmt.Sprintf("\nDelegate.register('d%d', { output = '†r', calls = { { _tool = 'add', n = '†input.n', _outputPath = '†state.v1' },", d+1)
		for i := 1; i < 8; i++ {
			script += fmt.Sprintf("{ _tool = 'add', n = '†state.v%d', _outputPath = '†state.v%d' },", i, i+1)
		}
		script += next + " } })"
	}
	return script
}

// BenchmarkScale holds a large plan's cost per call against a small one's, with
// every outcome flushed: layers, instances, and delegates within delegates.
func BenchmarkScale(b *testing.B) {
	for _, c := range []struct {
		name    string
		request *plan.Request
		calls   int
	}{
		{"layers=10x10", inLayers(10, 10), 100},
		{"layers=100x100", inLayers(100, 100), 10_000},
		{"instances=10", forInstances(10), 100},
		{"instances=1000", forInstances(1000), 10_000},
		{"delegates=10", handedOn(2), 2 * 46},
		{"delegates=100", handedOn(20), 20 * 46},
		{"delegates=1000", handedOn(200), 200 * 46},
	} {
		b.Run(c.name, func(b *testing.B) {
			h, err := host.Open(host.Config{FS: fstest.MapFS{"activities/a.lua": {Data: []byte(delegates(5))}}})
			if err != nil {
				b.Fatal(err)
			}
			log, err := sqlite.Open(filepath.Join(b.TempDir(), "log.db"), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer log.Close()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				runner := &engine.Runner{Log: log, Registry: h.Generation().Registry()}
				outcome, err := runner.Run(context.Background(), engine.Start{Context: fmt.Sprint("c", i), Request: c.request})
				if err != nil || outcome.Status != journal.RunDone {
					b.Fatal(outcome, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*c.calls), "µs/call")
		})
	}
}
