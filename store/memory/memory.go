// Package memory is a [store.Log] in memory, for tests and for programs that want no file.
package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"obelus/store"
)

// Log is a [store.Log] in memory, for tests and for programs that want no file.
// Nothing survives it. Its Append is durable in no other sense than that later
// reads see it.
type Log struct {
	mu       sync.RWMutex
	closed   bool
	contexts map[string]*memoryContext
	journal  []store.Entry
	n        int64 // the journal's newest position
	code     map[string]*store.Code
	kept     map[int64][]store.Exchange // by the positions of their entries
	taken    map[string]time.Time       // names of pruned contexts that were made once, and when they were pruned
	last     time.Time                  // date of the last append, so that the next is later
	pruned   int64                      // greatest epoch of the leases of pruned contexts
	line     int64                      // position of the newest line of a script
	changed  chan struct{}              // closed, and made anew, by an append; nil while nothing waits for it
}

var _ store.Log = (*Log)(nil)

// memoryContext is one context. Its slices only ever grow, so that a reader
// may go on with the header that it took under the lock.
type memoryContext struct {
	info     store.ContextInfo
	messages []*store.Message
	rare     []*store.Message // messages that hold a schema or are not data: few, and often read
	journal  []int            // indices of its own entries in the journal
	logs     []*store.LogLine // lines of its calls, and of those that it shares; never changed in place
	writes   store.WriteIndex
	lease    memoryLease
	once     bool // see [store.Batch].Once
}

// memoryLease is the last holding of a context. until is in milliseconds since
// 1970, and 0 once it has been given back.
type memoryLease struct{ epoch, until int64 }

// thisProcess is the holder of every lease in memory.
const thisProcess = "this process"

func (l memoryLease) holder(now time.Time) string {
	if l.until > now.UnixMilli() {
		return thisProcess
	}
	return ""
}

// after is the lease as an append leaves it.
func (l memoryLease) after(b *store.Batch, now time.Time) (memoryLease, error) {
	if b.Lease == nil {
		return l, nil
	}
	holder := l.holder(now)
	switch {
	case b.Lease.Epoch == 0 && holder == "":
		l = memoryLease{epoch: l.epoch + 1}
	case b.Lease.Epoch == 0 || b.Lease.Epoch != l.epoch || l.until == 0:
		return l, &store.HeldError{Context: b.Context, Holder: holder}
	}
	switch {
	case b.Lease.For <= 0:
		l.until = 0
	case l.until-now.UnixMilli() < b.Lease.For.Milliseconds()/2 || l.until == 0:
		l.until = now.Add(b.Lease.For).UnixMilli()
	}
	return l, nil
}

// New gives an empty log.
func New() *Log {
	return &Log{contexts: map[string]*memoryContext{}, code: map[string]*store.Code{}, kept: map[int64][]store.Exchange{}, taken: map[string]time.Time{}}
}

// Append implements [store.Log]. The values that the messages hold become the log's
// and must not be changed afterwards.
func (l *Log) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if err := ctx.Err(); err != nil {
		return store.Appended{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clock := time.Now().UTC()
	now := clock.Truncate(time.Millisecond)
	c, lease, err := l.target(b, now)
	if err != nil {
		return store.Appended{}, err
	}
	l.contexts[b.Context], c.lease = c, lease
	if !b.IsAside() || c.info.Updated.IsZero() {
		l.last = store.Later(clock, l.last)
		c.info.Updated = l.last
	}

	if b.Standing != nil {
		c.info.Standing = *b.Standing
		c.info.Standing.Due = b.Standing.Due.Truncate(time.Millisecond)
	}
	if b.Wake && c.info.Standing.Wakes {
		c.info.Standing.Due = now
	}
	before, n := int64(len(c.messages)), l.n
	messages, dates := slices.Clone(b.Messages), b.Dates(nil, now, l.newestDate(c))
	for i := range messages {
		m := &messages[i]
		m.Context, m.Seq, m.Date = b.Context, int64(len(c.messages))+1, dates[i]
		c.add(m)
	}
	seq := int64(len(c.messages))
	l.n += store.Positions(&b)
	for i, e := range b.Journal {
		e.Seq, e.N = b.Place(i, before, n)
		e.Context, e.Date, e.Ahead = b.Context, dates[len(messages)+i], 0
		if len(e.Exchanges) > 0 {
			l.kept[e.N], e.Exchanges = e.Exchanges, nil
		}
		c.journal = append(c.journal, len(l.journal))
		l.journal = append(l.journal, e)
	}
	for _, code := range b.Code {
		if code != nil {
			l.code[code.Digest] = code
		}
	}
	l.appendLogs(c, &b)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	a := store.Appended{Seq: seq, N: l.n, Date: now}
	if len(dates) > 0 {
		a.Date = l.newestDate(c)
	}
	if b.Lease != nil {
		a.Epoch = lease.epoch
	}
	return a, nil
}

// appendLogs adds a batch's lines of scripts to its context, and drops the oldest of their calls.
func (l *Log) appendLogs(c *memoryContext, b *store.Batch) {
	if len(b.Logs) == 0 {
		return
	}
	calls := map[string][]*store.LogLine{}
	for _, line := range c.logs {
		if line.Context == b.Context {
			calls[line.Call] = append(calls[line.Call], line)
		}
	}
	logs, dropped := slices.Clone(c.logs), map[*store.LogLine]bool{}
	for _, line := range b.Logs {
		l.line++
		line.N, line.Context, line.Date = l.line, b.Context, line.Date.UTC().Truncate(time.Millisecond)
		before := calls[line.Call]
		if line.Line = line.Dropped + 1; len(before) > 0 {
			line.Line += before[len(before)-1].Line
		}
		line.Dropped = 0
		logs, calls[line.Call] = append(logs, &line), append(before, &line)
	}
	for _, line := range b.Logs {
		of := calls[line.Call]
		for _, old := range of[:store.KeepLogs(of, b.KeepLogs)] {
			dropped[old] = true
		}
	}
	c.logs = slices.DeleteFunc(logs, func(line *store.LogLine) bool { return dropped[line] })
}

// newestDate is the newest date of a context's messages and journal entries.
func (l *Log) newestDate(c *memoryContext) (newest time.Time) {
	if n := len(c.messages); n > 0 {
		newest = c.messages[n-1].Date
	}
	if n := len(c.journal); n > 0 {
		if date := l.journal[c.journal[n-1]].Date; date.After(newest) {
			newest = date
		}
	}
	return newest
}

// target is the context that a batch goes to, and its lease after that; a new
// one is not yet in the log.
func (l *Log) target(b store.Batch, now time.Time) (*memoryContext, memoryLease, error) {
	c, err := l.find(b.Context)
	if err == nil && c == nil && b.Create == nil {
		err = fmt.Errorf("%w: %s", store.ErrNoContext, b.Context)
	}
	if err != nil {
		return nil, memoryLease{}, err
	}
	if b.Once && b.Create != nil {
		if at, taken := l.taken[b.Context]; taken && now.Sub(at) < store.KeepName {
			return nil, memoryLease{}, &store.PrunedNameError{Context: b.Context, At: at}
		}
		if c != nil {
			return nil, memoryLease{}, fmt.Errorf("%w: %s", store.ErrExists, b.Context)
		}
	}
	switch {
	case b.Create != nil && b.Create.Fork != "":
		if c != nil {
			return nil, memoryLease{}, fmt.Errorf("%w: %s", store.ErrExists, b.Context)
		}
		if c, err = l.fork(b.Context, *b.Create, b.Began(now)); err != nil {
			return nil, memoryLease{}, err
		}
		c.lease.epoch, c.once = l.pruned, b.Once
	case c == nil:
		c = newMemoryContext(b.Context, *b.Create, b.Began(now))
		c.lease.epoch, c.once = l.pruned, b.Once
	}
	lease, err := c.lease.after(&b, now)
	switch head := int64(len(c.messages)); {
	case err != nil:
	case b.ExpectSeq != store.AnySeq && b.ExpectSeq != head:
		err = &store.ConflictError{Context: b.Context, Expected: b.ExpectSeq, Actual: head}
	case b.ExpectN != 0 && l.newestN(c) > max(b.ExpectN, 0):
		err = &store.ConflictError{Context: b.Context}
	}
	return c, lease, err
}

// newestN is the position of a context's newest journal entry; 0 if it has none.
func (l *Log) newestN(c *memoryContext) int64 {
	if len(c.journal) == 0 {
		return 0
	}
	return l.journal[c.journal[len(c.journal)-1]].N
}

func newMemoryContext(name string, o store.Origin, now time.Time) *memoryContext {
	return &memoryContext{info: store.ContextInfo{Context: name, Origin: o, Created: now}, writes: store.WriteIndex{}}
}

// fork makes a context that begins like another one. In memory that is a copy.
func (l *Log) fork(name string, o store.Origin, now time.Time) (*memoryContext, error) {
	from, ok := l.contexts[o.Fork]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s", store.ErrNoContext, o.Fork)
	case o.At < 1 || o.At > int64(len(from.messages)):
		return nil, &store.ForkError{Context: o.Fork, At: o.At, Head: int64(len(from.messages))}
	}
	c := newMemoryContext(name, o, now)
	for _, shared := range slices.Concat([]string{o.Fork}, from.info.Shares) {
		if l.contexts[shared].info.Origin.At <= o.At {
			c.info.Shares = append(c.info.Shares, shared)
		}
	}
	for _, m := range from.messages[:o.At] {
		shared := *m
		shared.Context = name
		c.add(&shared)
	}
	before := int64(0)
	for _, i := range from.journal {
		switch seq := l.journal[i].Seq; {
		case seq <= o.At:
			c.journal, before = append(c.journal, i), seq
		case before < o.At:
			if whole := wholeUpTo(from.messages[before:o.At]); before+whole < o.At {
				return nil, &store.ForkError{Context: o.Fork, At: o.At, Before: before + whole, After: seq}
			}
		}
	}
	if n := len(c.journal); n > 0 {
		until := l.journal[c.journal[n-1]].Date
		for _, line := range from.logs {
			if !line.Date.After(until) {
				c.logs = append(c.logs, line)
			}
		}
	}
	return c, nil
}

// wholeUpTo is the number of messages ahead of an entry that a fork may separate from it: the
// messages before the call's write, the plan or the error that the entry is about.
func wholeUpTo(messages []*store.Message) int64 {
	n := slices.IndexFunc(messages, func(m *store.Message) bool {
		return m.Call != "" || m.Type == store.TypePlan || m.Kind == store.KindError
	})
	if n < 0 {
		n = len(messages)
	}
	return int64(n)
}

// Prune implements [store.Log].
func (l *Log) Prune(ctx context.Context, contexts ...store.ContextInfo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, info := range contexts {
		names = append(names, info.Context)
	}
	for _, info := range contexts {
		c, err := l.find(info.Context)
		if err == nil && c == nil {
			err = fmt.Errorf("%w: %s", store.ErrNoContext, info.Context)
		}
		if err != nil {
			return err
		}
		if !c.info.Updated.Equal(info.Updated) || int64(len(c.messages)) != info.Messages {
			return &store.ChangedError{Context: info.Context}
		}
		if holder := c.lease.holder(time.Now()); holder != "" {
			return &store.HeldError{Context: info.Context, Holder: holder}
		}
		if fork := l.needs(info.Context, names); fork != "" {
			return &store.NeededError{Context: info.Context, Fork: fork}
		}
	}
	for _, name := range names {
		if c := l.contexts[name]; c != nil {
			l.pruned = max(l.pruned, c.lease.epoch)
			if c.once {
				l.taken[name] = time.Now()
			}
			delete(l.contexts, name)
		}
	}
	l.journal = slices.Clone(l.journal)
	for i := range l.journal {
		if e := &l.journal[i]; l.contexts[e.Context] == nil {
			delete(l.kept, e.N)
			*e = store.Entry{} // its place stays: other entries are found by theirs
		}
	}
	return nil
}

// needs finds a fork of a context that is none of the others. That a copy would
// be good enough here is no reason to behave otherwise than in a file.
func (l *Log) needs(name string, others []string) string {
	for fork, c := range l.contexts {
		if !slices.Contains(others, fork) && slices.Contains(c.info.Shares, name) {
			return fork
		}
	}
	return ""
}

func (c *memoryContext) add(m *store.Message) {
	c.messages = append(c.messages, m)
	if m.Type != store.TypeData || m.Schema != nil {
		c.rare = append(c.rare, m)
	}
	c.writes.AddMessage(m)
}

// size is how many bytes of JSON a message holds: its data, its schema and its call.
func size(m *store.Message) (n int64) {
	if m.Data.Set {
		n += int64(len(store.EncodeJSON(m.Data.Value)))
	}
	if m.Schema != nil {
		n += int64(len(store.EncodeJSON(m.Schema)))
	}
	if m.Producer != nil {
		n += int64(len(store.EncodeJSON(m.Producer)))
	}
	return n
}

// Close implements [store.Log]. The contents are gone.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.contexts, l.journal, l.kept = true, nil, nil, nil
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return nil
}
