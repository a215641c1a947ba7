package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"obelus/store"
	"obelus/store/memory"
)

// written is a message of a call that wrote a value at a path.
func written(path string, value any) store.Message {
	p := store.MustParsePath(path)
	return store.Message{
		Type: store.TypeData, Kind: p.Kind(), Path: p, Data: store.Some(store.Wrap(p, value)),
		Producer: map[string]any{"_tool": "t", "_outputPath": path}, Call: "1.1", Written: "2026-01-02T03:04:05.678Z",
	}
}

func benchmarkLog(b *testing.B, name string) *Log {
	b.Helper()
	l, err := Open(filepath.Join(b.TempDir(), name), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	if _, err := l.Append(b.Context(), store.Batch{Context: "c", Create: &store.Origin{}}); err != nil {
		b.Fatal(err)
	}
	return l
}

func appendOne(ctx context.Context, l store.Log) error { return appendLeased(ctx, l, nil) }

func appendLeased(ctx context.Context, l store.Log, lease *store.Lease) error {
	_, err := l.Append(ctx, store.Batch{
		Context: "c", ExpectSeq: store.AnySeq, Lease: lease,
		Messages: []store.Message{written("†state.user.status", "active")},
		Journal:  []store.Entry{{Call: "1.1", Event: "done"}},
	})
	return err
}

func BenchmarkAppend(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		l := benchmarkLog(b, "log.db")
		b.ReportAllocs()
		for b.Loop() {
			if err := appendOne(b.Context(), l); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("leased", func(b *testing.B) {
		l := benchmarkLog(b, "log.db")
		lease := &store.Lease{For: time.Minute}
		if err := appendLeased(b.Context(), l, lease); err != nil {
			b.Fatal(err)
		}
		lease.Epoch = 1
		b.ReportAllocs()
		for b.Loop() {
			if err := appendLeased(b.Context(), l, lease); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("beside8MB", func(b *testing.B) { // the next context's
		l := benchmarkLog(b, "log.db")
		big := store.Batch{Context: "d", Create: &store.Origin{}, Messages: []store.Message{written("†state.user.status", strings.Repeat("x", 8<<20))}}
		if _, err := l.Append(b.Context(), big); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for b.Loop() {
			if err := appendOne(b.Context(), l); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("group64", func(b *testing.B) {
		l := benchmarkLog(b, "log.db")
		b.ReportAllocs()
		b.ResetTimer()
		before := l.commits.Load()
		var left atomic.Int64
		left.Store(int64(b.N))
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for left.Add(-1) >= 0 {
					if err := appendOne(b.Context(), l); err != nil {
						b.Error(err)
					}
				}
			})
		}
		group.Wait()
		b.ReportMetric(float64(b.N)/float64(l.commits.Load()-before), "appends/commit")
	})
}

// BenchmarkBareInsert is the least that an append can cost: one row, one
// commit, nothing else.
func BenchmarkBareInsert(b *testing.B) {
	c, err := dial(filepath.Join(b.TempDir(), "bare.db"), "rwc", Options{Synchronous: "full"}, "PRAGMA journal_mode = WAL",
		"CREATE TABLE messages (context TEXT, seq INTEGER, data TEXT, PRIMARY KEY (context, seq))")
	if err != nil {
		b.Fatal(err)
	}
	defer c.close()
	data := string(store.EncodeJSON(written("†state.user.status", "active").Data.Value))
	b.ReportAllocs()
	seq := int64(0)
	for b.Loop() {
		seq++
		if err := c.exec("INSERT INTO messages VALUES (?, ?, ?)", "c", seq, data); err != nil {
			b.Fatal(err)
		}
	}
}

// fillLog appends messages over a hundredth as many paths, in big batches.
func fillLog(b *testing.B, l store.Log, messages int) {
	b.Helper()
	paths := max(messages/100, 10)
	for i := 0; i < messages; {
		batch := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}}
		for range min(10_000, messages-i) {
			batch.Messages = append(batch.Messages, written(fmt.Sprintf("†state.item%d.value", i%paths), "some value"))
			i++
		}
		if _, err := l.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTouchingSet(b *testing.B) {
	for _, size := range []int{1e2, 1e4, 1e6} {
		b.Run(fmt.Sprintf("%.0e", float64(size)), func(b *testing.B) {
			l := benchmarkLog(b, "log.db")
			fillLog(b, l, size)
			benchmarkTouching(b, l, store.Query{Path: store.MustParsePath("†state.item7.value")})
		})
	}
}

// BenchmarkResolve gives the value of one path out of logs of all sizes, as a run
// does that goes on there.
func BenchmarkResolve(b *testing.B) {
	for _, size := range []int{1e2, 1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("%.0e", float64(size)), func(b *testing.B) {
			l := benchmarkLog(b, "log.db")
			fillLog(b, l, size)
			r := store.Resolver{Log: l, Context: "c"}
			b.ReportAllocs()
			for b.Loop() {
				if v, err := r.Resolve(b.Context(), store.MustParsePath("†state.item7.value"), ""); err != nil || !v.Exists {
					b.Fatal(v, err)
				}
			}
		})
	}
}

// BenchmarkTouchingRoot reads a whole kind that has just been set, over all
// that was below it before.
func BenchmarkTouchingRoot(b *testing.B) {
	for _, size := range []int{1e2, 1e4, 1e6} {
		b.Run(fmt.Sprintf("%.0e", float64(size)), func(b *testing.B) {
			l := benchmarkLog(b, "log.db")
			fillLog(b, l, size)
			batch := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Messages: []store.Message{written("†state", "new")}}
			if _, err := l.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			benchmarkTouching(b, l, store.Query{Path: store.MustParsePath("†state")})
		})
	}
}

// BenchmarkTouchingInstance reads a whole kind of one instance among others.
func BenchmarkTouchingInstance(b *testing.B) {
	for _, size := range []int{1e2, 1e4, 1e5} {
		b.Run(fmt.Sprintf("%.0e", float64(size)), func(b *testing.B) {
			l := benchmarkLog(b, "log.db")
			batch := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}}
			for i := range size {
				m := written("†state.value", "some value")
				m.Instance = fmt.Sprint("i", i)
				batch.Messages = append(batch.Messages, m)
			}
			if _, err := l.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			benchmarkTouching(b, l, store.Query{Path: store.KindPath("state"), Instance: "i7"})
		})
	}
}

func BenchmarkMemoryTouchingSet(b *testing.B) {
	for _, size := range []int{1e2, 1e4, 1e6} {
		b.Run(fmt.Sprintf("%.0e", float64(size)), func(b *testing.B) {
			l := memory.New()
			fillLog(b, l, size)
			benchmarkTouching(b, l, store.Query{Path: store.MustParsePath("†state.item7.value")})
		})
	}
}

func benchmarkTouching(b *testing.B, l store.Log, q store.Query) {
	q.Context = "c"
	b.ReportAllocs()
	for b.Loop() {
		found := false
		for _, err := range l.Touching(b.Context(), q) {
			if err != nil {
				b.Fatal(err)
			}
			found = true
			break
		}
		if !found {
			b.Fatal("nothing touches ", q.Path)
		}
	}
}

// BenchmarkTouchingPushes reads all of a thousand pushes.
func BenchmarkTouchingPushes(b *testing.B) {
	for _, l := range []store.Log{memory.New(), benchmarkLog(b, "log.db")} {
		b.Run(fmt.Sprintf("%T", l), func(b *testing.B) {
			batch := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}}
			for range 1000 {
				m := written("†state.items", "x")
				m.Method = store.Push
				batch.Messages = append(batch.Messages, m)
			}
			if _, err := l.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range l.Touching(b.Context(), store.Query{Context: "c", Path: store.MustParsePath("†state.items")}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != 1000 {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkBurst is 64 that read at once from a log that nobody has read yet.
func BenchmarkBurst(b *testing.B) {
	path := benchmarkLog(b, "log.db").path
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		l, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		var readers sync.WaitGroup
		for range 64 {
			readers.Go(func() {
				if _, err := l.Head(b.Context(), "c"); err != nil {
					b.Error(err)
				}
			})
		}
		readers.Wait()
		b.StopTimer()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkKinds lists the kinds of a log in which each path was written a
// hundred times.
func BenchmarkKinds(b *testing.B) {
	for _, size := range []int{1e2, 1e4, 1e6} {
		b.Run(fmt.Sprintf("%.0e", float64(size)), func(b *testing.B) {
			l := benchmarkLog(b, "log.db")
			fillLog(b, l, size)
			b.ReportAllocs()
			for b.Loop() {
				if kinds, err := l.Kinds(b.Context(), "c"); err != nil || len(kinds) != 1 {
					b.Fatal(kinds, err)
				}
			}
		})
	}
}

func BenchmarkMemoryAppend(b *testing.B) {
	l := memory.New()
	if _, err := l.Append(b.Context(), store.Batch{Context: "c", Create: &store.Origin{}}); err != nil {
		b.Fatal(err)
	}
	messages := []store.Message{written("†state.user.status", "active")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(b.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Messages: messages}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCurrentValues asks for one path and for all of a context beside
// another one, in the SQLite that is built in.
func BenchmarkCurrentValues(b *testing.B) {
	for _, size := range []int{1e4, 1e6} {
		l := benchmarkLog(b, "log.db")
		fillLog(b, l, size)
		for i := range size / 10 { // keys that could be an array's indexes
			batch := store.Batch{Context: "n", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: []store.Message{written(fmt.Sprint("†s.l.", i, ".a"), "x")}}
			if _, err := l.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
		for name, sql := range map[string]string{
			"path":    "SELECT value FROM current_values WHERE context = 'c' AND path = '†state.item7.value'",
			"all":     "SELECT count(value) FROM current_values WHERE context = 'c'",
			"numbers": "SELECT count(value) FROM current_values WHERE context = 'n'",
		} {
			b.Run(fmt.Sprintf("%s/%.0e", name, float64(size)), func(b *testing.B) {
				for b.Loop() {
					rows := 0
					err := l.Query(b.Context(), sql, func([]string) error { return nil }, func([]any) error { rows++; return nil })
					if err != nil || rows != 1 {
						b.Fatal(rows, err)
					}
				}
			})
		}
	}
}
