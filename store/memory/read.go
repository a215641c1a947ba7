package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"obelus/store"
)

// find gives a context, nil if there is none. The caller holds the lock.
func (l *Log) find(name string) (*memoryContext, error) {
	if l.closed {
		return nil, store.ErrClosed
	}
	return l.contexts[name], nil
}

// Head implements [store.Log].
func (l *Log) Head(ctx context.Context, name string) (int64, error) {
	messages, err := l.all(ctx, name)
	return int64(len(messages)), err
}

func (l *Log) all(ctx context.Context, name string) ([]*store.Message, error) {
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
func (l *Log) there(name string) (*memoryContext, error) {
	c, err := l.find(name)
	if err == nil && c == nil {
		err = fmt.Errorf("%w: %s", store.ErrNoContext, name)
	}
	return c, err
}

// Kinds implements [store.Log].
func (l *Log) Kinds(ctx context.Context, name string) ([]store.KindOf, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(name)
	if c == nil || err != nil {
		return nil, err
	}
	return store.SortKinds(c.writes.Kinds()), nil
}

// Holder implements [store.Log].
func (l *Log) Holder(ctx context.Context, name string) (string, error) {
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

// Touching implements [store.Log]. No lock is held while the loop's body runs, so it
// may append.
func (l *Log) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return func(yield func(store.Op, error) bool) {
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
				yield(store.Op{}, err)
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
func (l *Log) newest(q store.Query, few int) ([]*store.Message, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(q.Context)
	if c == nil || err != nil {
		return nil, err
	}
	if head := int64(len(c.messages)); q.At == 0 || q.At > head {
		q.At = head
	}
	var search store.WriteSearch
	search.Begin(c.writes[q.Instance], q.Path, q.At)
	var found []*store.Message
	for len(found) < few {
		seq, ok := search.Next()
		if !ok {
			break
		}
		found = append(found, c.messages[seq-1])
	}
	return found, nil
}

// Messages implements [store.Log].
func (l *Log) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return func(yield func(*store.Message, error) bool) {
		messages, err := l.candidates(f)
		for i := range messages {
			m := messages[i]
			if f.Newest {
				m = messages[len(messages)-1-i]
			}
			if err = ctx.Err(); err != nil {
				break
			}
			if f.Picks(m) && !yield(m, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// candidates are the messages among which those that the filter picks are.
func (l *Log) candidates(f store.Filter) ([]*store.Message, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(f.Context)
	if c == nil || err != nil {
		return nil, err
	}
	switch {
	case !f.Path.IsZero():
		return c.touching(f.Path), nil
	case f.Schema || f.Type != "" && f.Type != store.TypeData:
		return c.rare, nil
	}
	from, to := max(f.After, 0), int64(len(c.messages))
	if f.At > 0 {
		to = min(to, f.At)
	}
	return c.messages[min(from, to):to], nil
}

// touching gathers what touches a path in any instance, oldest first.
func (c *memoryContext) touching(path store.Path) []*store.Message {
	var found []*store.Message
	for _, root := range c.writes {
		var search store.WriteSearch
		search.Begin(root, path, int64(len(c.messages)))
		for seq, ok := search.Next(); ok; seq, ok = search.Next() {
			found = append(found, c.messages[seq-1])
		}
	}
	slices.SortFunc(found, func(a, b *store.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return found
}

// Journal implements [store.Log].
func (l *Log) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
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
			if f.Bare {
				e.Data = ""
			}
			if err = ctx.Err(); err != nil {
				break
			}
			if e.N > f.After && (f.At == 0 || e.N <= f.At) && e.Seq >= f.Seq && f.Picks(e) && !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Entry{}, err)
		}
	}
}

// Logs implements [store.Log].
func (l *Log) Logs(ctx context.Context, f store.LogFilter) iter.Seq2[store.LogLine, error] {
	return func(yield func(store.LogLine, error) bool) {
		lines, err := l.logs(ctx, f)
		for _, line := range lines {
			if err = ctx.Err(); err != nil {
				break
			}
			line := *line
			line.Context = f.Context
			if f.Picks(&line) && !yield(line, nil) {
				return
			}
		}
		if err != nil {
			yield(store.LogLine{}, err)
		}
	}
}

// logs returns the lines of a context in the order of a filter.
func (l *Log) logs(ctx context.Context, f store.LogFilter) (lines []*store.LogLine, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.find(f.Context)
	if c != nil {
		lines = slices.Clone(c.logs)
	}
	if f.Newest {
		slices.Reverse(lines)
	}
	return lines, err
}

// entries gives the whole journal, and which of it are a context's.
func (l *Log) entries(name string) (all []store.Entry, positions []int, err error) {
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

// Code implements [store.Log].
func (l *Log) Code(ctx context.Context, digest string) (*store.Code, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, store.ErrClosed
	}
	code, ok := l.code[digest]
	if !ok {
		return nil, fmt.Errorf("%w: %s", store.ErrNoCode, digest)
	}
	return code, nil
}

// Exchanges implements [store.Log].
func (l *Log) Exchanges(ctx context.Context, n int64) ([]store.Exchange, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, store.ErrClosed
	}
	return slices.Clone(l.kept[n]), nil
}

// Await implements [store.Log].
func (l *Log) Await(ctx context.Context, after int64) (newest int64, err error) {
	for {
		l.mu.Lock()
		n, closed := l.n, l.closed
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return after, ctx.Err()
		case closed:
			return after, store.ErrClosed
		case n > after:
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Contexts implements [store.Log].
func (l *Log) Contexts(ctx context.Context, f store.ContextFilter) iter.Seq2[store.ContextInfo, error] {
	return func(yield func(store.ContextInfo, error) bool) {
		infos, err := l.infos(ctx, f)
		for _, info := range infos {
			if err = ctx.Err(); err != nil {
				break
			}
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(store.ContextInfo{}, err)
		}
	}
}

// CountContexts implements [store.Log].
func (l *Log) CountContexts(ctx context.Context, f store.ContextFilter) (map[string]int64, error) {
	infos, err := l.infos(ctx, f)
	counts := map[string]int64{}
	for _, info := range infos {
		counts[info.Standing.Status]++
	}
	return counts, err
}

// Info implements [store.Log].
func (l *Log) Info(ctx context.Context, name string) (store.ContextInfo, error) {
	if err := ctx.Err(); err != nil {
		return store.ContextInfo{}, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	c, err := l.there(name)
	if err != nil {
		return store.ContextInfo{}, err
	}
	return c.describe(c.info), nil
}

// describe adds to the context's info the fields that are not kept there. The caller holds the
// log's lock.
func (c *memoryContext) describe(info store.ContextInfo) store.ContextInfo {
	info.Messages, info.Holder = int64(len(c.messages)), c.lease.holder(time.Now())
	info.Lapsed = info.Holder == "" && c.lease.until > 0
	for _, m := range c.messages[info.Origin.At:] {
		info.Bytes += size(m)
	}
	return info
}

func (l *Log) infos(ctx context.Context, f store.ContextFilter) ([]store.ContextInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, store.ErrClosed
	}
	var infos []store.ContextInfo
	for _, c := range l.contexts {
		if f.Picks(&c.info) {
			infos = append(infos, c.describe(c.info))
		}
	}
	slices.SortFunc(infos, func(a, b store.ContextInfo) int { return a.Mark().Compare(b.Mark()) })
	return infos, nil
}
