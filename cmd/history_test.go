package cmd

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/sqlite"
)

// historySize is how many messages BenchmarkHistory asks about.
var historySize = flag.Int("history", 100_000, "how many messages BenchmarkHistory asks about")

// longHistory is a log of one context "long" of so many messages over 10,000
// paths, each written by a call that read what was there before, and of another
// context beside it.
func longHistory(b *testing.B, size int) (path string) {
	path = filepath.Join(b.TempDir(), "log.db")
	log, err := sqlite.Open(path, sqlite.Options{Synchronous: "normal"})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	const paths, at = 10_000, 500
	for seq := 1; seq <= size; {
		batch := store.Batch{Context: "long", ExpectSeq: store.AnySeq, Create: &store.Origin{}}
		for range at {
			p := store.MustParsePath(fmt.Sprintf("†state.g%d.v%d", seq%100, seq%paths))
			call := fmt.Sprintf("1.%d", seq)
			batch.Messages = append(batch.Messages, store.Message{
				Type: store.TypeData, Kind: "state", Path: p, Call: call, Written: "2026-01-02T03:04:05.678Z",
				Data: store.Some(store.Wrap(p, map[string]any{"n": seq, "text": "some text of a usual length"})), Producer: map[string]any{"_tool": "t", "_outputPath": p.String()},
			})
			record := journal.Record{Call: call, Tick: 1, Position: seq, Tool: "t", Status: journal.Done, At: int64(seq - 1), Writes: []string{p.String()}}
			if seq > paths {
				record.Reads = map[string]int64{p.String(): int64(seq - paths)}
			}
			batch.Journal = append(batch.Journal, store.Entry{Call: call, Event: "done", Data: string(store.EncodeJSON(record))})
			seq++
		}
		if _, err := log.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return path
}

// BenchmarkHistory asks a long history what people ask, as whole commands less
// the start of the process.
func BenchmarkHistory(b *testing.B) {
	path := longHistory(b, *historySize)
	middle := fmt.Sprint(*historySize / 2 / 500 * 500)
	n := 0
	for _, args := range []string{
		"get state.g7.v4207", "get state.g7.v4207 --at " + middle, "get state.g7.v4207.n", "why state.g7.v4207", "why state.g7.v4207 --at " + middle,
		"fork --at " + middle + " -c long f%d", "log --path state.g7.v4207", "log --json --at 1000", "get state.g7",
	} {
		b.Run(strings.ReplaceAll(args, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n++
				args := strings.Fields(strings.ReplaceAll(args, "%d", fmt.Sprint(n)))
				args = append(args, "--db", path, "-q")
				if args[0] != "fork" {
					args = append(args, "-c", "long")
				}
				if status := run(Config{}, args, strings.NewReader(""), io.Discard, io.Discard); status != exitDone {
					b.Fatalf("%v: exit status %d", args, status)
				}
			}
		})
	}
}
