package store

import (
	"context"
	"errors"
	"iter"
	"slices"
)

// View is a context as its one writer sees it: what the log held when the view
// was opened, what has been committed since, and on top what is staged for the
// next append. The first is read from the log, the rest from memory, so a
// runner that writes a value and reads it again asks no database.
//
// A View belongs to one goroutine.
type View struct {
	log       Log
	context   string
	base      int64 // the log is asked for what is up to here
	absent    bool  // there was no such context
	committed layer
	staged    layer
	messages  []Message      // that are staged
	schemas   map[string]any // of the log and the committed layer, by kind; nil for none
	kinds     []KindOf       // of the log
	asked     bool           // for kinds
}

var _ Reader = (*View)(nil)

// layer is messages that follow each other, as the operations that they are.
type layer struct {
	after  int64      // the seq before the first
	places []placedOp // of each message
	writes writeIndex
}

// placedOp is an operation and the paths that it touches; none of a message that
// is none.
type placedOp struct {
	Op
	touches []Path
}

func placed(m *Message) placedOp {
	op, ok := m.Op()
	if !ok {
		return placedOp{}
	}
	return placedOp{op, op.Touches()}
}

func (l *layer) seq() int64 { return l.after + int64(len(l.places)) }

func (l *layer) add(p placedOp) {
	if l.writes == nil {
		l.writes = writeIndex{}
	}
	l.places = append(l.places, p)
	l.writes.enter(p.Instance, p.touches, p.Seq)
}

// touching yields what touches a path, newest first; false if the consumer has
// had enough.
func (l *layer) touching(q Query, yield func(Op, error) bool) bool {
	root := l.writes[q.Instance]
	if root == nil {
		return true
	}
	at := l.seq()
	if q.At > 0 {
		at = min(at, q.At)
	}
	var search writeSearch
	search.begin(root, q.Path, at)
	for seq, ok := search.next(); ok; seq, ok = search.next() {
		if !yield(l.places[seq-l.after-1].Op, nil) {
			return false
		}
	}
	return true
}

// OpenView gives a view of a context as it is now. One that does not exist yet
// is empty.
func OpenView(ctx context.Context, log Log, name string) (*View, error) {
	seq, err := log.Head(ctx, name)
	absent := errors.Is(err, ErrNoContext)
	if err != nil && !absent {
		return nil, err
	}
	v := &View{log: log, context: name, base: seq, absent: absent, schemas: map[string]any{}}
	v.committed.after, v.staged.after = seq, seq
	return v, nil
}

// Seq is the seq of the newest message that the view holds, staged ones among
// them.
func (v *View) Seq() int64 { return v.staged.seq() }

// Absent tells that there was no such context when the view was opened, and that
// it has not been refreshed and nothing has been committed since.
func (v *View) Absent() bool { return v.absent }

// Committed is the seq up to which the view holds what the log does.
func (v *View) Committed() int64 { return v.committed.seq() }

// Stage lays messages on top, with the seqs that they will have.
func (v *View) Stage(messages ...Message) {
	for _, m := range messages {
		m.Seq = v.Seq() + 1
		v.messages = append(v.messages, m)
		v.staged.add(placed(&m))
	}
}

// Staged gives the messages that are staged, for the append.
func (v *View) Staged() []Message { return v.messages }

// Commit takes what is staged for appended.
func (v *View) Commit() {
	v.absent = false
	for i := range v.messages {
		v.commit(&v.messages[i], v.staged.places[i])
	}
	v.Drop()
}

func (v *View) commit(m *Message, p placedOp) {
	v.committed.add(p)
	if m.Schema != nil {
		v.schemas[m.Kind] = m.Schema
	}
}

// Drop forgets what is staged.
func (v *View) Drop() { v.staged, v.messages = layer{after: v.committed.seq()}, nil }

// Refresh drops what is staged, takes in what others have appended to the
// context since, and gives it.
func (v *View) Refresh(ctx context.Context) ([]Message, error) {
	v.absent = false // as far as is known
	var news []Message
	for m, err := range v.log.Messages(ctx, Filter{Context: v.context, After: v.Committed()}) {
		if err != nil {
			return nil, err
		}
		v.commit(m, placed(m))
		news = append(news, *m)
	}
	v.Drop()
	return news, nil
}

// Touching implements [Reader].
func (v *View) Touching(ctx context.Context, q Query) iter.Seq2[Op, error] {
	return func(yield func(Op, error) bool) {
		if !v.staged.touching(q, yield) || !v.committed.touching(q, yield) || v.base == 0 {
			return
		}
		q.Context = v.context
		if q.At == 0 || q.At > v.base {
			q.At = v.base
		}
		for op, err := range v.log.Touching(ctx, q) {
			if !yield(op, err) || err != nil {
				return
			}
		}
	}
}

// Resolver answers over the view, staged messages and all.
func (v *View) Resolver() Resolver { return Resolver{Log: v, Context: v.context} }

// Kinds is [Log.Kinds] over the view, staged messages and all. It asks the log
// once; what others had appended by then may be among the answers before
// [View.Refresh] has taken it in.
func (v *View) Kinds(ctx context.Context) ([]KindOf, error) {
	if !v.asked && v.base > 0 {
		kinds, err := v.log.Kinds(ctx, v.context)
		if err != nil {
			return nil, err
		}
		v.kinds, v.asked = kinds, true
	}
	return SortKinds(slices.Concat(v.kinds, v.committed.writes.kinds(), v.staged.writes.kinds())), nil
}

// Schema is the newest schema that has been declared for a kind, nil if there
// is none.
func (v *View) Schema(ctx context.Context, kind string) (any, error) {
	for _, m := range slices.Backward(v.messages) {
		if m.Schema != nil && m.Kind == kind {
			return m.Schema, nil
		}
	}
	if schema, ok := v.schemas[kind]; ok || v.base == 0 {
		return schema, nil
	}
	v.schemas[kind] = nil
	for m, err := range v.log.Messages(ctx, Filter{Context: v.context, At: v.base, Kind: kind, Schema: true, Newest: true}) {
		if err != nil {
			return nil, err
		}
		v.schemas[kind] = m.Schema
		break
	}
	return v.schemas[kind], nil
}
