package plan

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"obelus/store"
)

// Audience is the reader of a context for whom a model answers or plans.
type Audience struct {
	Instance string       // of the call; empty for all of them
	Scopes   []store.Path // the paths to use above all

	// Only restricts the values to the scopes: all else is left out.
	Only bool
}

// Show folds messages, the oldest first, into the kinds that a model is shown: in the order in
// which they were written last, scoped ones last. It also returns the texts for models among them.
func (a Audience) Show(ctx context.Context, messages []*store.Message) (kinds []Shown, prose []Prose, err error) {
	messages = slices.DeleteFunc(slices.Clone(messages), func(m *store.Message) bool { return !VisibleToModel(m.Instance, a.Instance) })
	view, held := store.ViewOf(messages), map[store.KindOf]*shownKind{}
	tick := 0
	for _, m := range messages {
		if m.Type == store.TypeSystem || m.Type == store.TypeText {
			text, _ := m.Data.Value.(string)
			prose = append(prose, Prose{System: m.Type == store.TypeSystem, Text: text})
		}
		if m.Type != store.TypeData {
			continue
		}
		// In an instance its own messages and the global ones make one value.
		at := store.KindOf{Instance: cmp.Or(m.Instance, a.Instance), Kind: m.Kind}
		if held[at] == nil {
			held[at] = &shownKind{}
		}
		held[at].add(m, &tick)
	}
	var all []*shownKind
	for at, k := range held {
		k.Kind, k.Scoped = at.Kind, a.names(at.Kind)
		if k.Value, err = a.value(ctx, view, at); err != nil {
			return nil, nil, err
		}
		if k.Schema, _, err = view.Schema(ctx, at.Kind, at.Instance); err != nil {
			return nil, nil, err
		}
		if !a.Only || a.Scopes == nil || k.Scoped && (k.Value.Set || k.Schema != nil) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, (*shownKind).compare)
	for i, k := range all {
		k.Rank = i
		kinds = append(kinds, k.Shown)
	}
	if !a.Only {
		slices.SortStableFunc(kinds, func(x, y Shown) int { return boolRank(x.Scoped) - boolRank(y.Scoped) })
	}
	return kinds, prose, nil
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shownKind is a kind while its messages are read.
type shownKind struct {
	Shown
	last moment
}

// add takes in a message. tick is the newest tick that a call has written in so far.
func (k *shownKind) add(m *store.Message, tick *int) {
	at := moment{*tick, math.MaxInt, m.Seq}
	if number, position, ok := strings.Cut(m.Call, "."); ok {
		t, err := strconv.Atoi(number)
		p, err2 := strconv.Atoi(position)
		if err == nil && err2 == nil {
			at = moment{t, p, 0}
			*tick = max(*tick, t)
		}
	}
	if k.Seq = m.Seq; at.compare(k.last) > 0 {
		k.last = at
	}
	k.Description, k.Instance = cmp.Or(m.Description, k.Description), cmp.Or(m.Instance, k.Instance)
}

// compare orders kinds by when they were written last.
func (k *shownKind) compare(other *shownKind) int {
	return cmp.Or(k.last.compare(other.last), cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Instance, other.Instance))
}

// moment is the time of a write, as far as chance does not decide about it: the writes of a tick
// have the order of its calls.
type moment struct {
	tick, position int
	seq            int64 // of a message that no call wrote
}

func (m moment) compare(other moment) int {
	return cmp.Or(cmp.Compare(m.tick, other.tick), cmp.Compare(m.position, other.position), cmp.Compare(m.seq, other.seq))
}

// names reports whether a scope names a kind, or something in it.
func (a Audience) names(kind string) bool {
	return slices.ContainsFunc(a.Scopes, func(p store.Path) bool { return p.Kind() == kind })
}

// value returns the value of a kind, or, for one that is restricted, the parts that the scopes
// name.
func (a Audience) value(ctx context.Context, view *store.View, at store.KindOf) (value store.Optional, err error) {
	paths := []store.Path{store.KindPath(at.Kind)}
	if a.Only && a.Scopes != nil {
		paths = slices.DeleteFunc(slices.Clone(a.Scopes), func(p store.Path) bool { return p.Kind() != at.Kind })
	}
	slices.SortFunc(paths, func(x, y store.Path) int { return len(x.String()) - len(y.String()) })
	for n, path := range paths {
		if slices.ContainsFunc(paths[:n], func(wider store.Path) bool { return wider.Contains(path) }) {
			continue
		}
		resolved, err := view.Resolver().Resolve(ctx, path, at.Instance)
		switch {
		case err != nil:
			return value, err
		case !resolved.Exists:
		case len(path.Segments()) == 0:
			return store.Some(resolved.Value), nil
		default:
			value = store.Some(store.Joined(value.Value, path.Segments(), store.Set, resolved.Value))
		}
	}
	return value, nil
}
