package store

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
)

// View is a context as its one writer sees it: the log as of when the view was opened, the messages
// committed since, and on top those staged for the next append. The first are read from the log,
// the others from memory, so a runner that writes a value and reads it again queries no database.
//
// A View belongs to one goroutine at a time.
type View struct {
	log     Reader
	context string
	base    int64 // seq up to which the log is read
	absent  bool  // there was no such context
	// Of the messages after base, staged ones last; the zero Op for a message without one.
	ops      []Op
	writes   WriteIndex               // of the same
	messages []Message                // that are staged
	sent     int                      // how many of them are being appended
	declared map[string][]declaration // by the messages after base, by kind, oldest first
	// In the log up to base, by kind, newest first, to the first global one.
	schemas      map[string][]declaration
	hidden       map[int64]bool         // seqs of superseded messages; may be nil
	kinds        []KindOf               // of the log
	kindsRead    bool                   // for kinds
	materialized map[spot]*materialized // values that are kept as they grow, see stands
}

var _ OpReader = (*View)(nil)

// add takes in a message.
func (v *View) add(m *Message) {
	op, ok := m.Op()
	if !ok {
		op = Op{}
	}
	v.ops = append(v.ops, op)
	v.writes.AddOp(op)
	if m.Schema != nil {
		v.declared[m.Kind] = append(v.declared[m.Kind], declaration{m.Instance, m.Schema})
	}
}

// OpenView opens a view of a context as it is now. A context that does not exist yet gives an empty
// view.
func OpenView(ctx context.Context, log Reader, name string) (*View, error) {
	seq, err := log.Head(ctx, name)
	absent := errors.Is(err, ErrNoContext)
	if err != nil && !absent {
		return nil, err
	}
	view := NewView(log, name)
	view.base, view.absent = seq, absent
	return view, nil
}

// NewView is [OpenView] for a context that the log is known to lack.
func NewView(log Reader, name string) *View {
	return &View{log: log, context: name, absent: true, writes: WriteIndex{}, declared: map[string][]declaration{}, schemas: map[string][]declaration{}}
}

// ViewOf is a view of messages alone, without a log. Their seqs count from 1 there.
func ViewOf(messages []*Message) *View {
	v := &View{absent: true, writes: WriteIndex{}, declared: map[string][]declaration{}, schemas: map[string][]declaration{}}
	for i, m := range messages {
		own := *m
		own.Seq = int64(i) + 1
		v.add(&own)
	}
	return v
}

// Seq is the seq of the newest message that the view holds, staged ones among
// them.
func (v *View) Seq() int64 { return v.base + int64(len(v.ops)) }

// Absent reports that the context did not exist when the view was opened, and that nothing has been
// refreshed or committed since.
func (v *View) Absent() bool { return v.absent }

// Committed is the seq up to which the view and the log agree.
func (v *View) Committed() int64 { return v.Seq() - int64(len(v.messages)) }

// Stage lays messages on top, with the seqs that they will have.
func (v *View) Stage(messages ...Message) {
	for _, m := range messages {
		m.Seq = v.Seq() + 1
		v.add(&m)
		v.messages = append(v.messages, m)
	}
}

// Staged gives the messages that are staged and not sent. They are good until the next
// [View.Commit], [View.Unstage] or [View.Drop].
func (v *View) Staged() []Message { return v.messages[v.sent:] }

// Send returns the messages of [View.Staged], for an append, and the seq that the append expects.
// Until [View.Commit] marks them as appended, other messages may be staged on top, but not sent; if
// the append fails, [View.Drop] drops all of them.
func (v *View) Send() (messages []Message, expect int64) {
	if v.sent > 0 {
		panic("store: a view sends while it is being appended to")
	}
	messages = v.Staged()
	v.sent = len(v.messages)
	return messages, v.Seq() - int64(len(messages))
}

// Commit marks the sent messages as appended.
func (v *View) Commit() {
	v.absent = false
	v.messages = slices.Delete(v.messages, 0, v.sent)
	v.sent = 0
}

// Hide leaves messages out of what paths resolve to from now on, as of any seq: they
// are in the log, and count no more. Staged ones that are dropped are hidden no longer.
func (v *View) Hide(seqs ...int64) {
	v.materialized = nil
	for _, seq := range seqs {
		if v.hidden == nil {
			v.hidden = map[int64]bool{}
		}
		v.hidden[seq] = true
	}
}

// Hides reports whether a message is hidden. It may be called from several goroutines while the
// view does not change.
func (v *View) Hides(seq int64) bool { return v.hidden[seq] }

// Drop drops the staged messages.
func (v *View) Drop() { v.Unstage(v.Committed()) }

// Unstage drops the staged messages after a seq. It rebuilds the index, which is rare enough.
func (v *View) Unstage(seq int64) {
	n := int(v.Seq() - seq)
	if n <= 0 {
		return
	}
	maps.DeleteFunc(v.hidden, func(hidden int64, _ bool) bool { return hidden > seq })
	v.forgetMaterialized(seq)
	v.ops = v.ops[:len(v.ops)-n]
	for _, m := range v.messages[len(v.messages)-n:] {
		if of := v.declared[m.Kind]; m.Schema != nil {
			v.declared[m.Kind] = of[:len(of)-1]
		}
	}
	v.messages = v.messages[:len(v.messages)-n]
	v.sent = min(v.sent, len(v.messages))
	v.writes = WriteIndex{}
	for _, op := range v.ops {
		v.writes.AddOp(op)
	}
}

// Refresh drops the staged messages, reads the messages that others have appended to the context
// since, and returns those.
func (v *View) Refresh(ctx context.Context) ([]Message, error) {
	v.absent = false // as far as is known
	v.Drop()
	var news []Message
	for m, err := range v.log.Messages(ctx, Filter{Context: v.context, After: v.Committed()}) {
		if err != nil {
			return nil, err
		}
		v.add(m)
		news = append(news, *m)
	}
	return news, nil
}

// Touching implements [OpReader].
func (v *View) Touching(ctx context.Context, q Query) iter.Seq2[Op, error] {
	if v.base == 0 && !v.writes.Touches(q.Instance, q.Path) {
		return untouched
	}
	return func(yield func(Op, error) bool) {
		if !v.touching(q, yield) || v.base == 0 {
			return
		}
		q.Context = v.context
		if q.At == 0 || q.At > v.base {
			q.At = v.base
		}
		for op, err := range v.log.Touching(ctx, q) {
			if err == nil && v.hidden[op.Seq] {
				continue
			}
			if !yield(op, err) || err != nil {
				return
			}
		}
	}
}

// isUntouched reports whether no operation touches a path, where the view knows that without the
// log.
func (v *View) isUntouched(instance string, path Path) bool {
	return v.base == 0 && !v.writes.Touches(instance, path) && (instance == "" || !v.writes.Touches("", path))
}

// untouched yields nothing.
func untouched(func(Op, error) bool) {}

// touching yields the operations that are not in the log; false if the consumer stopped.
func (v *View) touching(q Query, yield func(Op, error) bool) bool {
	at := v.Seq()
	if q.At > 0 {
		at = min(at, q.At)
	}
	var search WriteSearch
	search.Begin(v.writes[q.Instance], q.Path, at)
	for seq, ok := search.Next(); ok; seq, ok = search.Next() {
		if !v.hidden[seq] && !yield(v.ops[seq-v.base-1], nil) {
			return false
		}
	}
	return true
}

// Resolver answers over the view, staged messages and all.
func (v *View) Resolver() Resolver { return Resolver{Log: v, Context: v.context} }

// Kinds is [Reader.Kinds] over the view, staged messages included. It queries the log once;
// messages that others have appended by then may show before [View.Refresh] has read them.
func (v *View) Kinds(ctx context.Context) ([]KindOf, error) {
	if !v.kindsRead && v.base > 0 {
		kinds, err := v.log.Kinds(ctx, v.context)
		if err != nil {
			return nil, err
		}
		v.kinds, v.kindsRead = kinds, true
	}
	kinds := SortKinds(slices.Concat(v.kinds, v.writes.Kinds()))
	if len(v.hidden) == 0 {
		return kinds, nil
	}
	left := kinds[:0]
	for _, k := range kinds {
		for _, err := range v.Touching(ctx, Query{Path: KindPath(k.Kind), Instance: k.Instance}) {
			if err != nil {
				return nil, err
			}
			left = append(left, k)
			break
		}
	}
	return left, nil
}

// declaration is a schema that a message declares for its kind, for all or for an instance.
type declaration struct {
	instance string
	schema   any
}

// holds reports whether it counts in an instance (protocol §3: no instance sees another's).
func (d declaration) holds(instance string) bool { return d.instance == "" || d.instance == instance }

// schemasInLog lists the schemas that messages of the log declare for a kind, the newest first, up
// to the first that is for all.
func (v *View) schemasInLog(ctx context.Context, kind string) (all []declaration, err error) {
	for m, err := range v.log.Messages(ctx, Filter{Context: v.context, At: v.base, Kind: kind, Schema: true, Newest: true}) {
		if err != nil {
			return nil, err
		}
		if all = append(all, declaration{m.Instance, m.Schema}); m.Instance == "" {
			break
		}
	}
	return all, nil
}

// Schema is the newest schema that has been declared for a kind, for all or for the
// instance, and the instance that declared it, "" for all; nil if there is none.
func (v *View) Schema(ctx context.Context, kind, instance string) (schema any, of string, err error) {
	for _, d := range slices.Backward(v.declared[kind]) {
		if d.holds(instance) {
			return d.schema, d.instance, nil
		}
	}
	if _, ok := v.schemas[kind]; !ok && v.base > 0 {
		if v.schemas[kind], err = v.schemasInLog(ctx, kind); err != nil {
			delete(v.schemas, kind)
			return nil, "", err
		}
	}
	for _, d := range v.schemas[kind] {
		if d.holds(instance) {
			return d.schema, d.instance, nil
		}
	}
	return nil, "", nil
}
