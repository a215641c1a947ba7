package proposal

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"obelus/store"
)

// A tick repeats one of the maxPeriod before it if both had the same calls, which ended alike, and
// nothing is new since. Of repetitions within the last maxLooked ticks, the first is told to the
// model, and the second ends the run (protocol §7).
const (
	maxPeriod = 5
	maxLooked = 12
)

// RepeatedError ends a run whose model makes no progress.
type RepeatedError struct {
	First, Second int    // ticks
	Problem       string // with the plan or the output of the second; empty for none
}

func (e *RepeatedError) Error() string {
	text := fmt.Sprintf("the model repeats itself: tick %d is as tick %d was, and has brought nothing new", e.Second, e.First)
	if e.Problem != "" {
		return e.Problem + " (" + text + ")"
	}
	return text
}

// repetition says which earlier tick the newest one repeats; empty for none. Its error is a
// [*RepeatedError] where an earlier one has repeated another already.
func (s Source) repetition(ctx context.Context, ticks []tick, messages []*store.Message) (string, error) {
	newest := len(ticks) - 1
	first, err := s.repeated(ctx, ticks, newest, messages)
	if first < 0 || err != nil {
		return "", err
	}
	for i := newest - 1; i > newest-maxLooked && i > 0; i-- {
		if before, err := s.repeated(ctx, ticks, i, messages); err != nil {
			return "", err
		} else if before >= 0 {
			return "", &RepeatedError{ticks[first].Tick, ticks[newest].Tick, ticks[newest].problem()}
		}
	}
	return fmt.Sprintf("tick %d is as tick %d was, and has brought nothing new: plan something else, or give the output. Another repetition ends the run.", ticks[newest].Tick, ticks[first].Tick), nil
}

// repeated returns the newest of the ticks before tick i that it repeats; -1 for none.
func (s Source) repeated(ctx context.Context, ticks []tick, i int, messages []*store.Message) (int, error) {
	for before := i - 1; before >= max(0, i-maxPeriod); before-- {
		if !bytes.Equal(ticks[before].signature, ticks[i].signature) {
			continue
		}
		same, err := s.nothingNew(ctx, ticks[before].end, ticks[i].end, messages)
		if same || err != nil {
			return before, err
		}
	}
	return -1, nil
}

// sign sets the signature of a tick.
func (t *tick) sign() {
	outcomes := []any{}
	for _, past := range t.past {
		outcomes = append(outcomes, past.Status)
	}
	refused := ""
	if t.Refused != nil {
		refused = t.Refused.Digest
	}
	t.signature = store.EncodeJSON([]any{WithoutReasons(t.calls), string(t.Output), outcomes, refused})
}

// WithoutReasons returns calls without what has no effect.
func WithoutReasons(calls []any) []any {
	made := slices.Clone(calls)
	for i, call := range calls {
		if object, ok := call.(map[string]any); ok {
			object = maps.Clone(object)
			delete(object, "_reasoningForCall")
			made[i] = object
		}
	}
	return made
}

// nothingNew reports whether at one seq the values of all kinds except the errors are as they were
// at an earlier one, and no text for models has come since.
func (s Source) nothingNew(ctx context.Context, then, now int64, messages []*store.Message) (bool, error) {
	for _, m := range messages {
		isText := m.Type == store.TypeSystem || m.Type == store.TypeText
		if isText && m.Seq > then && m.Seq <= now {
			return false, nil
		}
	}
	held, err := s.View.Kinds(ctx)
	if err != nil {
		return false, err
	}
	for _, k := range held {
		if k.Kind == store.KindError {
			continue
		}
		before, err := s.valueAt(ctx, k, then)
		if err != nil {
			return false, err
		}
		after, err := s.valueAt(ctx, k, now)
		if err != nil || before.Set != after.Set || !bytes.Equal(store.EncodeJSON(before.Value), store.EncodeJSON(after.Value)) {
			return false, err
		}
	}
	return true, nil
}

// valueAt returns the value of a kind as of a seq.
func (s Source) valueAt(ctx context.Context, k store.KindOf, seq int64) (store.Optional, error) {
	if seq == 0 { // to a resolver it means now
		return store.Optional{}, nil
	}
	resolver := s.View.Resolver()
	if seq < s.View.Seq() {
		resolver.At = seq
	}
	resolved, err := resolver.Resolve(ctx, store.KindPath(k.Kind), k.Instance)
	return store.Optional{Value: resolved.Value, Set: resolved.Exists}, err
}
