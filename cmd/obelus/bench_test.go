package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"testing/fstest"

	"obelus/engine"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
)

// chain is a plan of n calls of which each reads what the one before wrote.
func chain(n int) *engine.Request {
	request := &engine.Request{Context: []store.Message{{Type: store.TypeData, Kind: "state", Data: map[string]any{"v0": 1}, HasData: true}}}
	for i := range n {
		request.Calls = append(request.Calls, engine.Source{Call: map[string]any{
			"_tool": "add", "n": fmt.Sprintf("†state.v%d", i), "_outputPath": fmt.Sprintf("†state.v%d", i+1),
		}})
	}
	return request
}

const addActivity = `
Tool.register("add", { properties = { n = { type = "number" } }, required = { "n" } })
Activity.register("add", function(call) return call.n + 1 end)
`

func benchmarkCalls(b *testing.B, open func() store.Log) {
	h, err := host.Open(host.Config{FS: fstest.MapFS{"activities/add.lua": {Data: []byte(addActivity)}}})
	if err != nil {
		b.Fatal(err)
	}
	const calls = 100
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		runner := &engine.Runner{Log: open(), Registry: h.Generation().Registry()}
		outcome, err := runner.Run(context.Background(), engine.Start{Context: fmt.Sprint("c", i), Request: chain(calls)})
		if err != nil || outcome.Status != engine.RunDone {
			b.Fatal(outcome, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*calls), "µs/call")
}

// BenchmarkCallMemory is a small Lua call end to end, in a chain, in memory.
func BenchmarkCallMemory(b *testing.B) {
	benchmarkCalls(b, func() store.Log { return store.NewMemory() })
}

// BenchmarkCallDurable is the same in a file, with every outcome flushed.
func BenchmarkCallDurable(b *testing.B) {
	log, err := sqlite.Open(filepath.Join(b.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	benchmarkCalls(b, func() store.Log { return log })
}

// BenchmarkBareAppend is what a program would do by itself: one row, flushed.
func BenchmarkBareAppend(b *testing.B) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE steps (n INTEGER PRIMARY KEY, value TEXT)"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare("INSERT INTO steps (value) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := insert.Exec(`{"n":1}`); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/call")
}
