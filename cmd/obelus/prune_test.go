package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"obelus/store"
)

// meanwhile is a log to which somebody else appends just before what was chosen
// is removed.
type meanwhile struct {
	store.Log
	do func()
}

func (m *meanwhile) Prune(ctx context.Context, contexts ...store.ContextInfo) error {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return m.Log.Prune(ctx, contexts...)
}

// TestPruneMeanwhile: what comes while prune chooses is not removed with what was
// chosen, and makes its context one that stays.
func TestPruneMeanwhile(t *testing.T) {
	log := store.NewMemory()
	add := func(name string) {
		messages, err := store.ParseMessages([]byte(`[{"type":"input","approved":true}]`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: messages}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		add(name)
	}
	names := func() (all []string) {
		for info, err := range log.Contexts(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info.Context)
		}
		slices.Sort(all)
		return all
	}
	before := time.Time{} // just after all that
	for info := range log.Contexts(t.Context(), "") {
		before = info.Updated.Add(1)
		break
	}
	a := &app{log: &meanwhile{log, func() { add("b") }}}
	removed, _, err := a.remove(t.Context(), nil, before, pruneOptions{})
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(removed)), []string{"a", "c"}) || !slices.Equal(names(), []string{"b"}) {
		t.Errorf("removed %v, %v; there is %v", removed, err, names())
	}

	// One that is named is what was asked for, as it is now.
	a.log = &meanwhile{log, func() { add("b") }}
	if removed, _, err := a.remove(t.Context(), []string{"b"}, time.Time{}, pruneOptions{}); err != nil || len(removed) != 1 || len(names()) != 0 {
		t.Errorf("removed %v, %v; there is %v", removed, err, names())
	}
}
