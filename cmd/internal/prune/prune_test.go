package prune

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"obelus/store"
	"obelus/store/memory"
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

// portions is a log that keeps in mind what was removed at once.
type portions struct {
	store.Log
	removed []string
}

func (p *portions) Prune(ctx context.Context, contexts ...store.ContextInfo) error {
	var names []string
	for _, c := range contexts {
		names = append(names, c.Context)
	}
	slices.Sort(names)
	p.removed = append(p.removed, strings.Join(names, " "))
	return p.Log.Prune(ctx, contexts...)
}

// TestChoice_RemovesInPortions holds that what is removed by age or status leaves room for
// others between, that what is named goes at once, and that a fork, also of a delegate's
// context, goes before what it is a fork of.
func TestChoice_RemovesInPortions(t *testing.T) {
	filled := func() *portions {
		log := memory.New()
		add := func(name string, n int, origin store.Origin) {
			messages, err := store.ParseMessages([]byte("[" + strings.Repeat(`{"type":"input","approved":true},`, n-1) + `{"type":"input","approved":true}]`))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := log.Append(t.Context(), store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &origin, Messages: messages}); err != nil {
				t.Fatal(err)
			}
		}
		add("fork", portionMessages, store.Origin{})
		add("old", portionMessages, store.Origin{})
		add("old.part", 1, store.Origin{Parent: "old"})
		add("small", 1, store.Origin{})
		add("smaller", 1, store.Origin{})
		add("new", 1, store.Origin{Fork: "old.part", At: 1})
		add("newer", portionMessages, store.Origin{Fork: "new", At: 1})
		add("newer.part", 1, store.Origin{Parent: "newer"})
		add("newest", 1, store.Origin{Fork: "newer.part", At: 1})
		return &portions{Log: log}
	}
	for _, c := range []struct {
		names []string
		dry   bool
		roots int
		want  []string
	}{
		{nil, false, 7, []string{"newer newer.part newest", "new old old.part small smaller", "fork"}},
		{nil, true, 7, nil},
		{[]string{"fork", "new", "newer", "newest", "old"}, false, 5, []string{"fork new newer newer.part newest old old.part"}},
	} {
		log := filled()
		choice := Choice{Names: c.names, Before: time.Now().Add(time.Hour), DryRun: c.dry}
		removed, inside, err := choice.Remove(t.Context(), log)
		if err != nil || len(removed) != c.roots || inside != 2 || !slices.Equal(log.removed, c.want) {
			t.Errorf("%v: removed %v and %d, %v: %q", c.names, removed, inside, err, log.removed)
		}
	}
}

// TestChoice_AppendMeanwhile: what comes while prune chooses is not removed with what was
// chosen, and makes its context one that stays.
func TestChoice_AppendMeanwhile(t *testing.T) {
	log := memory.New()
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
		for info, err := range log.Contexts(t.Context(), store.ContextFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info.Context)
		}
		slices.Sort(all)
		return all
	}
	before := time.Time{} // just after all that
	for info := range log.Contexts(t.Context(), store.ContextFilter{}) {
		before = info.Updated.Add(1)
		break
	}
	choice := Choice{Before: before}
	removed, _, err := choice.Remove(t.Context(), &meanwhile{log, func() { add("b") }})
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(removed)), []string{"a", "c"}) || !slices.Equal(names(), []string{"b"}) {
		t.Errorf("removed %v, %v; there is %v", removed, err, names())
	}

	// One that is named is what was asked for, as it is now.
	choice = Choice{Names: []string{"b"}}
	if removed, _, err := choice.Remove(t.Context(), &meanwhile{log, func() { add("b") }}); err != nil || len(removed) != 1 || len(names()) != 0 {
		t.Errorf("removed %v, %v; there is %v", removed, err, names())
	}
}
