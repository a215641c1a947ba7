package web

import (
	"context"
	"errors"
	"iter"

	"obelus/store"
)

// intake takes room for what is read of the log for one piece of an answer, so that no more is
// read at once for all clients together than there is room for. A piece for which there is no room
// now is given up, and begins anew when it can have the whole room. It is for one goroutine at a
// time.
type intake struct {
	room  *answerRoom
	read  int64           // bytes so far
	taken int64           // of the room for large pieces
	whole map[string]bool // contexts that count as a whole
	full  bool            // the piece was given up
}

// intakeKey is the key of a context's intake.
type intakeKey struct{}

// add counts bytes that are read. It gives [errNoRoom] where there is no room for them now.
func (in *intake) add(bytes int64) error {
	in.read += bytes
	if in.read <= max(in.taken, smallPiece) || in.taken == in.room.total {
		return nil
	}
	wanted := min(in.read, in.room.total)
	if in.full || !in.room.large.TryAcquire(wanted-in.taken) {
		in.full = true
		return errNoRoom
	}
	in.taken = wanted
	return nil
}

// addWhole counts the size of a context of which all is read: an entry may be large, and is in
// memory before it can be counted.
func (in *intake) addWhole(ctx context.Context, log store.Reader, name string) error {
	if in.whole[name] {
		return nil
	}
	info, err := log.Info(ctx, name)
	if err != nil {
		return err
	}
	size := info.Bytes
	for _, shared := range info.Shares {
		if origin, err := log.Info(ctx, shared); err == nil {
			size += origin.Bytes
		}
	}
	if in.whole == nil {
		in.whole = map[string]bool{}
	}
	in.whole[name] = true
	return in.add(size)
}

// countedLog is a log that counts what is read of it with the context of a piece of an answer.
type countedLog struct{ store.Log }

func (l countedLog) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return counted(ctx, l.Log.Touching(ctx, q), func(op store.Op) int64 { return sizeOf(op.Value) })
}

func (l countedLog) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return whole(ctx, l.Log, f.Context, l.Log.Messages(ctx, f))
}

func (l countedLog) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	all := l.Log.Journal(ctx, f)
	if f.Context == "" || f.Event != "" || f.Call != "" || f.After > 0 || f.Newest {
		return counted(ctx, all, func(e store.Entry) int64 { return int64(len(e.Data)) })
	}
	return whole(ctx, l.Log, f.Context, all)
}

// whole counts the context that an iterator reads.
func whole[T any](ctx context.Context, log store.Reader, name string, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	in, ok := ctx.Value(intakeKey{}).(*intake)
	if !ok {
		return all
	}
	return func(yield func(T, error) bool) {
		if err := in.addWhole(ctx, log, name); err != nil && !errors.Is(err, store.ErrNoContext) {
			var none T
			yield(none, err)
			return
		}
		all(yield)
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
