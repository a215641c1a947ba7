// Package logkeeper brings the lines that calls print and log into the log: many at once, aside of
// the steps of a run, and never more of one call than are kept.
package logkeeper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"obelus/engine/plan"
	"obelus/store"
)

// flushAfter is the time that a line waits for others.
const flushAfter = 250 * time.Millisecond

// DefaultKeep is the number of bytes that are kept of the lines of one call.
const DefaultKeep = 256 << 10

// New returns what keeps lines in a log, with at most keep bytes for a call.
func New(log store.Appender, keep int64) plan.Logs { return &keeper{log: log, keep: keep} }

type keeper struct {
	log  store.Appender
	keep int64

	writing sync.Mutex // held while lines are appended

	mu    sync.Mutex
	calls map[call]*pending
	kept  int64 // number of lines
	timer *time.Timer
}

type call struct{ context, call string }

// pending has the lines of a call that wait.
type pending struct {
	lines   []store.LogLine
	sizes   []int64
	bytes   int64
	dropped int64 // lines just before them
}

// Keep implements [plan.Logs].
func (k *keeper) Keep(line store.LogLine) {
	size := k.fit(&line)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept++
	line.N = k.kept // for the order of lines of several calls; the log gives them another
	if k.calls == nil {
		k.calls = map[call]*pending{}
		k.timer = time.AfterFunc(flushAfter, k.Flush)
	}
	of := call{line.Context, line.Call}
	p := k.calls[of]
	if p == nil {
		p = &pending{}
		k.calls[of] = p
	}
	p.lines, p.sizes, p.bytes = append(p.lines, line), append(p.sizes, size), p.bytes+size
	for p.bytes > k.keep && len(p.lines) > 1 {
		p.bytes -= p.sizes[0]
		p.lines[0] = store.LogLine{}
		p.lines, p.sizes, p.dropped = p.lines[1:], p.sizes[1:], p.dropped+1
	}
}

// fit shortens a line that has no room by itself, and returns its size.
func (k *keeper) fit(line *store.LogLine) int64 {
	line.Text = strings.ToValidUTF8(line.Text, "\uFFFD")
	size := line.Size()
	if size <= k.keep {
		return size
	}
	line.Fields = nil
	if more := line.Size() - k.keep; more > 0 {
		text := strings.ToValidUTF8(line.Text[:max(len(line.Text)-int(more), 0)], "")
		line.Text = fmt.Sprintf("%s… (%d bytes more)", text, len(line.Text)-len(text))
	} else {
		line.Text += " (its fields have no room)"
	}
	return line.Size()
}

// Flush implements [plan.Logs]. Lines that can't be appended are lost: the run itself reports that
// its log can't be written.
func (k *keeper) Flush() {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	calls := k.calls
	if k.calls = nil; calls != nil {
		k.timer.Stop()
	}
	k.mu.Unlock()
	for name, lines := range byContext(calls) {
		_, _ = k.log.Append(context.Background(), store.Batch{Context: name, ExpectSeq: store.AnySeq, Logs: lines, KeepLogs: k.keep})
	}
}

// byContext returns the lines of each context, in the order in which they came.
func byContext(calls map[call]*pending) map[string][]store.LogLine {
	all := map[string][]store.LogLine{}
	for of, p := range calls {
		p.lines[0].Dropped = p.dropped
		all[of.context] = append(all[of.context], p.lines...)
	}
	for _, lines := range all {
		slices.SortFunc(lines, func(a, b store.LogLine) int { return int(a.N - b.N) })
	}
	return all
}
