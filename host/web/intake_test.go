package web

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"obelus/store"
)

var largeReads = flag.Int("large-reads", 40, "how many large answers are asked for while there is no room for them")

// weighedLog counts the bytes that are read of a log for answers.
type weighedLog struct {
	store.Log
	read atomic.Int64
}

func (l *weighedLog) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return weigh(ctx, &l.read, l.Log.Touching(ctx, q), func(op store.Op) int64 { return sizeOf(op.Value) })
}

func (l *weighedLog) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return weigh(ctx, &l.read, l.Log.Messages(ctx, f), func(m *store.Message) int64 { return sizeOf(m.Data.Value) })
}

func (l *weighedLog) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return weigh(ctx, &l.read, l.Log.Journal(ctx, f), func(e store.Entry) int64 { return int64(len(e.Data)) })
}

func weigh[T any](ctx context.Context, sum *atomic.Int64, all iter.Seq2[T, error], size func(T) int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if ctx.Value(intakeKey{}) != nil {
				sum.Add(size(v))
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// TestRoom_BeforeReading holds that what is made as a whole takes room before it is read: while
// others have all the room, requests for it read little, whatever they ask for, and once there is
// room they are answered.
func TestRoom_BeforeReading(t *testing.T) {
	const values, size = 10, 300_000
	files := maps.Clone(work)
	files["activities/keep.lua"] = `
		Tool.register("keep", { type = "object", properties = { text = { type = "string" } } })
		Activity.register("keep", {}, function(call) return #call.text end)`
	var calls []string
	for i := range values {
		calls = append(calls, fmt.Sprintf(`{"_tool":"keep","text":"†input.text","_outputPath":"†state.n%d"}`, i))
	}
	files["plans/keep.json"] = `{"calls":[` + strings.Join(calls, ",") + `]}`
	var weighed *weighedLog
	s := serve(t, files, nil, func(c *Config) {
		weighed = &weighedLog{Log: c.Log}
		c.Log, c.Body, c.Answers, c.Page = weighed, 8<<20, 4<<20, true
	})
	long := strings.Repeat("x", size)
	for i := range values {
		s.expect("POST", "/v1/contexts/a/messages", fmt.Sprintf(`{"type":"state","v%d":"%s"}`, i, long), 200, fmt.Sprintf(`{"context":"a","messages":1,"seq":%d}`, i+1))
	}
	if status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/keep.json","context":"h","approve":"always","wait":true,"input":{"text":"`+long+`"}}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	paths := []string{
		"/v1/contexts/a/get", "/v1/contexts/a/get?depth=1", "/v1/contexts/a/get?ref=state", "/v1/contexts/a/why?ref=state", "/v1/diff?a=a&a_at=1",
		"/v1/contexts/h/approvals", "/v1/approvals", "/v1/contexts/h/calls", "/v1/contexts/h/graph",
		"/inbox", "/inbox?tool=keep", "/runs/a?tab=state", "/runs/h", "/runs/h?sel=1.1", "/runs/h?tab=graph", "/diff?a=a&a_at=1&b=a",
	}
	s.server.timeouts.room = 10 * time.Millisecond
	if !s.server.room.large.TryAcquire(s.server.room.total) {
		t.Fatal("there is no room to begin with")
	}
	const most = size + 2*smallPiece // of one value, and what tells of the context
	for range *largeReads {
		path := paths[rand.IntN(len(paths))]
		before := weighed.read.Load()
		if status, text := s.ask("GET", path, ""); status != http.StatusTooManyRequests {
			t.Errorf("%s without room: %d, %d bytes", path, status, len(text))
		}
		if read := weighed.read.Load() - before; read > most {
			t.Errorf("%s read %d bytes without room", path, read)
		}
	}
	s.server.timeouts.room = time.Minute
	s.server.room.large.Release(s.server.room.total)
	for _, path := range paths {
		if status, text := s.ask("GET", path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %.200s", path, status, text)
		}
	}
	if !s.server.room.large.TryAcquire(s.server.room.total) {
		t.Error("answers that were sent have room still")
	}
}
