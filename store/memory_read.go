package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

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
