package plan

import (
	"context"
	"slices"

	"obelus/store"
)

// Audience is the reader of a context for whom a model answers or plans.
type Audience struct {
	Instance string       // of the call; empty for all of them
	Scopes   []store.Path // the paths to use above all

	// Only restricts the values to the scopes: all else is left out.
	Only bool
}

// Show folds messages, the oldest first, into the kinds that a model is shown: in the order of
// their last messages, scoped ones last. It also returns the texts for models among them.
func (a Audience) Show(ctx context.Context, messages []*store.Message) (kinds []Shown, prose []Prose, err error) {
	messages = slices.Clone(messages)
	messages = slices.DeleteFunc(messages, func(m *store.Message) bool { return !VisibleToModel(m.Instance, a.Instance) })
	newest := map[store.KindOf]*store.Message{}
	described := map[store.KindOf]string{}
	for _, m := range messages {
		if m.Type == store.TypeSystem || m.Type == store.TypeText {
			text, _ := m.Data.Value.(string)
			prose = append(prose, Prose{System: m.Type == store.TypeSystem, Text: text})
		}
		if m.Kind == "" || m.Type == store.TypePlan || m.Type == store.TypeTool {
			continue
		}
		at := store.KindOf{Instance: m.Instance, Kind: m.Kind}
		newest[at] = m
		if m.Description != "" {
			described[at] = m.Description
		}
	}
	view := store.ViewOf(messages)
	for at, m := range newest {
		global := store.KindOf{Kind: at.Kind}
		if a.Instance != "" && at.Instance == "" && newest[store.KindOf{Instance: a.Instance, Kind: at.Kind}] != nil {
			continue // the instance's own is made of both
		}
		shown := Shown{Kind: at.Kind, Instance: at.Instance, Seq: m.Seq, Scoped: a.names(at.Kind), Description: described[at]}
		if shown.Description == "" {
			shown.Description = described[global]
		}
		if g := newest[global]; a.Instance != "" && g != nil {
			shown.Seq = max(shown.Seq, g.Seq)
		}
		if shown.Value, err = a.value(ctx, view, at); err != nil {
			return nil, nil, err
		}
		if shown.Schema, _, err = view.Schema(ctx, at.Kind, at.Instance); err != nil {
			return nil, nil, err
		}
		if a.Only && a.Scopes != nil && (!shown.Scoped || !shown.Value.Set && shown.Schema == nil) {
			continue
		}
		kinds = append(kinds, shown)
	}
	slices.SortFunc(kinds, func(x, y Shown) int {
		if x.Scoped != y.Scoped && !a.Only {
			if x.Scoped {
				return 1
			}
			return -1
		}
		return int(x.Seq - y.Seq)
	})
	return kinds, prose, nil
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
