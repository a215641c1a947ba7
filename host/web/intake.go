package web

import (
	"context"
	"errors"
	"iter"

	"obelus/store"
)

// intake takes room for what is read of the log for one piece of an answer, so that no more is
// read at once for all clients together than there is room for. A piece for which there is no room
// now is given up, and begins anew once it can have more. It is for one goroutine at a time.
type intake struct {
	room    *answerRoom
	read    int64  // bytes so far
	taken   int64  // of the room for large pieces
	lacked  int64  // how much there was no room for; 0 if the piece was not given up
	context string // the newest of which all entries are read
}

// intakeKey is the key of a context's intake.
type intakeKey struct{}

// add counts bytes that were read. It gives [errNoRoom] where there is no room for them now.
func (in *intake) add(bytes int64) error {
	in.read += bytes
	return in.take(in.read)
}

// take takes room for so many bytes in all.
func (in *intake) take(bytes int64) error {
	wanted := min(bytes, in.room.total)
	switch {
	case in.lacked > 0:
		return errNoRoom
	case wanted <= max(in.taken, smallPiece):
		return nil
	case !in.room.large.TryAcquire(wanted - in.taken):
		in.lacked = wanted
		return errNoRoom
	}
	in.taken = wanted
	return nil
}

// expect takes room for a context of which all entries of the journal are to be read: they hold
// what its messages do, and a large one is in memory before it is counted.
func (in *intake) expect(ctx context.Context, log store.Reader, name string) error {
	if in.context == name {
		return nil
	}
	info, err := log.Info(ctx, name)
	if err != nil {
		return err
	}
	in.context = name
	return in.take(min(info.Bytes, in.room.total/2)) // so that others stay possible beside it
}

// countedLog is a log that counts what is read of it with the context of a piece of an answer.
type countedLog struct{ store.Log }

func (l countedLog) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return counted(ctx, l.Log.Touching(ctx, q), func(op store.Op) int64 { return sizeOf(op.Value) })
}

func (l countedLog) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return counted(ctx, l.Log.Messages(ctx, f), func(m *store.Message) int64 { return sizeOf(m.Data.Value) + sizeOf(m.Schema) })
}

func (l countedLog) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	entries := counted(ctx, l.Log.Journal(ctx, f), func(e store.Entry) int64 { return int64(len(e.Data)) })
	in, ok := ctx.Value(intakeKey{}).(*intake)
	if !ok || f.Context == "" || f.Event != "" || f.Call != "" || f.After > 0 || f.Newest {
		return entries
	}
	return func(yield func(store.Entry, error) bool) {
		if err := in.expect(ctx, l.Log, f.Context); err != nil && !errors.Is(err, store.ErrNoContext) {
			yield(store.Entry{}, err)
			return
		}
		entries(yield)
	}
}

// counted counts the values that an iterator yields.
func counted[T any](ctx context.Context, all iter.Seq2[T, error], size func(T) int64) iter.Seq2[T, error] {
	in, ok := ctx.Value(intakeKey{}).(*intake)
	if !ok {
		return all
	}
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if err == nil {
				err = in.add(size(v))
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// sizeOf estimates the bytes that a value takes.
func sizeOf(v any) int64 {
	const header = 64
	size := int64(header)
	switch v := v.(type) {
	case string:
		size += int64(len(v))
	case []any:
		for _, entry := range v {
			size += sizeOf(entry)
		}
	case map[string]any:
		for key, entry := range v {
			size += int64(len(key)) + sizeOf(entry)
		}
	}
	return size
}
