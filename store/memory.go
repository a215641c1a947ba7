package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a [Log] in memory, for tests and for programs that want no file.
// Nothing survives it. Its Append is durable in no other sense than that later
// reads see it.
type Memory struct {
	mu       sync.RWMutex
	closed   bool
	contexts map[string]*memoryContext
	journal  []Entry
	n        int64 // the journal's newest position
	code     map[string]*Code
	last     time.Time // of the last append, so that the next is later
	pruned   int64     // the greatest epoch of the leases of contexts that are gone
}

var _ Log = (*Memory)(nil)

// memoryContext is one context. Its slices only ever grow, so that a reader
// may go on with the header that it took under the lock.
type memoryContext struct {
	info     ContextInfo
	messages []*Message
	rare     []*Message // those that hold a schema or are no data: few, and often asked for
	journal  []int      // which entries of the journal are its own
	writes   writeIndex
	lease    memoryLease
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
func (l memoryLease) after(b *Batch, now time.Time) (memoryLease, error) {
	if b.Lease == nil {
		return l, nil
	}
	holder := l.holder(now)
	switch {
	case b.Lease.Epoch == 0 && holder == "":
		l = memoryLease{epoch: l.epoch + 1}
	case b.Lease.Epoch == 0 || b.Lease.Epoch != l.epoch || l.until == 0:
		return l, &HeldError{Context: b.Context, Holder: holder}
	}
	switch {
	case b.Lease.For <= 0:
		l.until = 0
	case l.until-now.UnixMilli() < b.Lease.For.Milliseconds()/2 || l.until == 0:
		l.until = now.Add(b.Lease.For).UnixMilli()
	}
	return l, nil
}

// NewMemory gives an empty log.
func NewMemory() *Memory {
	return &Memory{contexts: map[string]*memoryContext{}, code: map[string]*Code{}}
}

// Append implements [Log]. The values that the messages hold become the log's
// and must not be changed afterwards.
func (l *Memory) Append(ctx context.Context, b Batch) (Appended, error) {
	if err := ctx.Err(); err != nil {
		return Appended{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clock := time.Now().UTC()
	now := clock.Truncate(time.Millisecond)
	c, lease, err := l.target(b, now)
	if err != nil {
		return Appended{}, err
	}
	l.contexts[b.Context], c.lease = c, lease
	if b.Lease == nil || len(b.Messages)+len(b.Journal) > 0 || c.info.Updated.IsZero() {
		l.last = Later(clock, l.last)
		c.info.Updated = l.last
	}

	before, n := int64(len(c.messages)), l.n
	messages := slices.Clone(b.Messages)
	for i := range messages {
		m := &messages[i]
		m.Context, m.Seq, m.Date = b.Context, int64(len(c.messages))+1, dateOr(m.Date, now)
		c.add(m)
	}
	seq := int64(len(c.messages))
	l.n += Positions(&b)
	for i, e := range b.Journal {
		e.Seq, e.N = b.Place(i, before, n)
		e.Context, e.Date, e.Ahead = b.Context, dateOr(e.Date, now), 0
		c.journal = append(c.journal, len(l.journal))
		l.journal = append(l.journal, e)
	}
	for _, code := range b.Code {
		if code != nil {
			l.code[code.Digest] = code
		}
	}
	a := Appended{Seq: seq, N: l.n, Date: now}
	if b.Lease != nil {
		a.Epoch = lease.epoch
	}
	return a, nil
}

// target is the context that a batch goes to, and its lease after that; a new
// one is not yet in the log.
func (l *Memory) target(b Batch, now time.Time) (*memoryContext, memoryLease, error) {
	c, err := l.find(b.Context)
	if err == nil && c == nil && b.Create == nil {
		err = fmt.Errorf("%w: %s", ErrNoContext, b.Context)
	}
	if err != nil {
		return nil, memoryLease{}, err
	}
	switch {
	case b.Create != nil && b.Create.Fork != "":
		if c != nil {
			return nil, memoryLease{}, fmt.Errorf("%w: %s", ErrExists, b.Context)
		}
		if c, err = l.fork(b.Context, *b.Create, now); err != nil {
			return nil, memoryLease{}, err
		}
		c.lease.epoch = l.pruned
	case c == nil:
		c = newMemoryContext(b.Context, *b.Create, now)
		c.lease.epoch = l.pruned
	}
	lease, err := c.lease.after(&b, now)
	if head := int64(len(c.messages)); err == nil && b.ExpectSeq != AnySeq && b.ExpectSeq != head {
		err = &ConflictError{Context: b.Context, Expected: b.ExpectSeq, Actual: head}
	}
	return c, lease, err
}

func newMemoryContext(name string, o Origin, now time.Time) *memoryContext {
	return &memoryContext{info: ContextInfo{Context: name, Origin: o, Created: now}, writes: writeIndex{}}
}

// fork makes a context that begins like another one. In memory that is a copy.
func (l *Memory) fork(name string, o Origin, now time.Time) (*memoryContext, error) {
	from, ok := l.contexts[o.Fork]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s", ErrNoContext, o.Fork)
	case o.At < 1 || o.At > int64(len(from.messages)):
		return nil, &ForkError{Context: o.Fork, At: o.At, Head: int64(len(from.messages))}
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
				return nil, &ForkError{Context: o.Fork, At: o.At, Before: before + whole, After: seq}
			}
		}
	}
	return c, nil
}

// wholeUpTo is how many of the messages ahead of an entry may be parted from it: those
// before what a call wrote, a plan or an error, of which the entry tells.
func wholeUpTo(messages []*Message) int64 {
	n := slices.IndexFunc(messages, func(m *Message) bool { return m.Call != "" || m.Type == TypePlan || m.Kind == KindError })
	if n < 0 {
		n = len(messages)
	}
	return int64(n)
}

// Prune implements [Log].
func (l *Memory) Prune(ctx context.Context, contexts ...ContextInfo) error {
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
			err = fmt.Errorf("%w: %s", ErrNoContext, info.Context)
		}
		if err != nil {
			return err
		}
		if !c.info.Updated.Equal(info.Updated) || int64(len(c.messages)) != info.Messages {
			return &ChangedError{Context: info.Context}
		}
		if holder := c.lease.holder(time.Now()); holder != "" {
			return &HeldError{Context: info.Context, Holder: holder}
		}
		if fork := l.needs(info.Context, names); fork != "" {
			return &NeededError{Context: info.Context, Fork: fork}
		}
	}
	for _, name := range names {
		if c := l.contexts[name]; c != nil {
			l.pruned = max(l.pruned, c.lease.epoch)
			delete(l.contexts, name)
		}
	}
	l.journal = slices.Clone(l.journal)
	for i := range l.journal {
		if e := &l.journal[i]; l.contexts[e.Context] == nil {
			*e = Entry{} // its place stays: others are found by theirs
		}
	}
	return nil
}

// needs finds a fork of a context that is none of the others. That a copy would
// be good enough here is no reason to behave otherwise than in a file.
func (l *Memory) needs(name string, others []string) string {
	for fork, c := range l.contexts {
		if !slices.Contains(others, fork) && slices.Contains(c.info.Shares, name) {
			return fork
		}
	}
	return ""
}

func (c *memoryContext) add(m *Message) {
	c.messages = append(c.messages, m)
	if m.Type != TypeData || m.Schema != nil {
		c.rare = append(c.rare, m)
	}
	c.writes.add(m)
}

func dateOr(date, otherwise time.Time) time.Time {
	if date.IsZero() {
		return otherwise
	}
	return date.UTC().Truncate(time.Millisecond)
}

// find gives a context, nil if there is none. The caller holds the lock.
func (l *Memory) find(name string) (*memoryContext, error) {
	if l.closed {
		return nil, ErrClosed
	}
	return l.contexts[name], nil
}

// Head implements [Log].
func (l *Memory) Head(ctx context.Context, name string) (int64, error) {
	messages, err := l.all(ctx, name)
	return int64(len(messages)), err
}

func (l *Memory) all(ctx context.Context, name string) ([]*Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.there(name)
	if err != nil {
		return nil, err
	}
	return c.messages, nil
}

// there is find of a context that must be there. The caller holds the lock.
func (l *Memory) there(name string) (*memoryContext, error) {
	c, err := l.find(name)
	if err == nil && c == nil {
		err = fmt.Errorf("%w: %s", ErrNoContext, name)
	}
	return c, err
}

// Size implements [Log]: the bytes of data, schemas and calls.
func (l *Memory) Size(ctx context.Context, name string) (int64, error) {
	messages, err := l.all(ctx, name)
	size := 0
	for _, m := range messages {
		if m.HasData {
			size += len(EncodeJSON(m.Data))
		}
		if m.Schema != nil {
			size += len(EncodeJSON(m.Schema))
		}
		if m.Producer != nil {
			size += len(EncodeJSON(m.Producer))
		}
	}
	return int64(size), err
}

// Kinds implements [Log].
func (l *Memory) Kinds(ctx context.Context, name string) ([]KindOf, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(name)
	if c == nil || err != nil {
		return nil, err
	}
	return SortKinds(c.writes.kinds()), nil
}

// Holder implements [Log].
func (l *Memory) Holder(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(name)
	if c == nil || err != nil {
		return "", err
	}
	return c.lease.holder(time.Now()), nil
}

// Lapsed implements [Log].
func (l *Memory) Lapsed(ctx context.Context) (names []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, ErrClosed
	}
	now := time.Now()
	for name, c := range l.contexts {
		if c.lease.until > 0 && c.lease.holder(now) == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Touching implements [Log]. No lock is held while the loop's body runs, so it
// may append.
func (l *Memory) Touching(ctx context.Context, q Query) iter.Seq2[Op, error] {
	return func(yield func(Op, error) bool) {
		// Most readers stop at the first operation or take them all: small
		// portions first, each found anew below the one before.
		for portion := 2; ; portion *= 4 {
			messages, err := l.newest(q, portion)
			for _, m := range messages {
				if err = ctx.Err(); err != nil {
					break
				}
				op, _ := m.Op()
				if !yield(op, nil) {
					return
				}
			}
			if err != nil {
				yield(Op{}, err)
				return
			}
			if len(messages) < portion {
				return
			}
			if q.At = messages[len(messages)-1].Seq - 1; q.At == 0 {
				return
			}
		}
	}
}

// newest finds the newest few messages that touch a path.
func (l *Memory) newest(q Query, few int) ([]*Message, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(q.Context)
	if c == nil || err != nil {
		return nil, err
	}
	if head := int64(len(c.messages)); q.At == 0 || q.At > head {
		q.At = head
	}
	var search writeSearch
	search.begin(c.writes[q.Instance], q.Path, q.At)
	var found []*Message
	for len(found) < few {
		seq, ok := search.next()
		if !ok {
			break
		}
		found = append(found, c.messages[seq-1])
	}
	return found, nil
}

// Messages implements [Log].
func (l *Memory) Messages(ctx context.Context, f Filter) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		messages, err := l.candidates(f)
		for i := range messages {
			m := messages[i]
			if f.Newest {
				m = messages[len(messages)-1-i]
			}
			if err = ctx.Err(); err != nil {
				break
			}
			if f.picks(m) && !yield(m, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// candidates are the messages among which those that the filter picks are.
func (l *Memory) candidates(f Filter) ([]*Message, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(f.Context)
	if c == nil || err != nil {
		return nil, err
	}
	switch {
	case !f.Path.IsZero():
		return c.touching(f.Path), nil
	case f.Schema || f.Type != "" && f.Type != TypeData:
		return c.rare, nil
	}
	from, to := max(f.After, 0), int64(len(c.messages))
	if f.At > 0 {
		to = min(to, f.At)
	}
	return c.messages[min(from, to):to], nil
}

// touching gathers what touches a path in any instance, oldest first.
func (c *memoryContext) touching(path Path) []*Message {
	var found []*Message
	for _, root := range c.writes {
		var search writeSearch
		search.begin(root, path, int64(len(c.messages)))
		for seq, ok := search.next(); ok; seq, ok = search.next() {
			found = append(found, c.messages[seq-1])
		}
	}
	slices.SortFunc(found, func(a, b *Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return found
}

// picks tests everything but the path.
func (f *Filter) picks(m *Message) bool {
	return m.Seq > f.After && (f.At == 0 || m.Seq <= f.At) &&
		(f.Type == "" || m.Type == f.Type) && (f.Kind == "" || m.Kind == f.Kind) &&
		(f.Since.IsZero() || !m.Date.Before(f.Since)) && (!f.Schema || m.Schema != nil)
}

// Journal implements [Log].
func (l *Memory) Journal(ctx context.Context, f JournalFilter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		entries, positions, err := l.entries(f.Context)
		count := len(entries)
		if f.Context != "" {
			count = len(positions)
		}
		for i := range count {
			if f.Newest {
				i = count - 1 - i
			}
			if f.Context != "" {
				i = positions[i]
			}
			e := entries[i]
			if f.Context != "" {
				e.Context = f.Context
			}
			if err = ctx.Err(); err != nil {
				break
			}
			if e.N > f.After && (f.At == 0 || e.N <= f.At) && e.Seq >= f.Seq && f.picks(e) && !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// entries gives the whole journal, and which of it are a context's.
func (l *Memory) entries(name string) (all []Entry, positions []int, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(name)
	if err != nil {
		return nil, nil, err
	}
	if c != nil {
		positions = c.journal
	}
	return l.journal, positions, nil
}

// Code implements [Log].
func (l *Memory) Code(ctx context.Context, digest string) (*Code, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, ErrClosed
	}
	code, ok := l.code[digest]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNoCode, digest)
	}
	return code, nil
}

// Contexts implements [Log].
func (l *Memory) Contexts(ctx context.Context, prefix string) iter.Seq2[ContextInfo, error] {
	return func(yield func(ContextInfo, error) bool) {
		infos, err := l.infos(prefix)
		for _, info := range infos {
			if err = ctx.Err(); err != nil {
				break
			}
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(ContextInfo{}, err)
		}
	}
}

// Info implements [Log].
func (l *Memory) Info(ctx context.Context, name string) (ContextInfo, error) {
	if err := ctx.Err(); err != nil {
		return ContextInfo{}, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.there(name)
	if err != nil {
		return ContextInfo{}, err
	}
	return c.described(), nil
}

// described is its info as it is now. The caller holds the log's lock.
func (c *memoryContext) described() ContextInfo {
	info := c.info
	info.Messages = int64(len(c.messages))
	return info
}

func (l *Memory) infos(prefix string) ([]ContextInfo, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, ErrClosed
	}
	var found []*memoryContext
	for name, c := range l.contexts {
		if strings.HasPrefix(name, prefix) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *memoryContext) int { return b.info.Updated.Compare(a.info.Updated) })
	infos := make([]ContextInfo, len(found))
	for i, c := range found {
		infos[i] = c.described()
	}
	return infos, nil
}

// Close implements [Log]. What had been appended is gone.
func (l *Memory) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.contexts, l.journal = true, nil, nil
	return nil
}
