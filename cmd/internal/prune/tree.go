package prune

import (
	"context"
	"maps"
	"slices"
	"time"

	"obelus/store"
)

// tree holds the contexts of a log. A delegate's context is below its parent.
type tree struct {
	infos    map[string]store.ContextInfo
	roots    []string            // in the order of the log
	children map[string][]string // by parent
}

// readTree reads which contexts a log has.
func readTree(ctx context.Context, log store.Reader) (*tree, error) {
	t := &tree{infos: map[string]store.ContextInfo{}, children: map[string][]string{}}
	var newest time.Time
	// Twice, since a context that is appended to meanwhile moves to the front, and may be missed.
	for range 2 {
		for info, err := range log.Contexts(ctx, store.ContextFilter{Since: newest}) {
			if err != nil {
				return nil, err
			}
			t.add(info)
			if info.Updated.After(newest) {
				newest = info.Updated
			}
		}
	}
	return t, nil
}

// add adds a context, or replaces its entry.
func (t *tree) add(info store.ContextInfo) {
	_, known := t.infos[info.Context]
	if t.infos[info.Context] = info; known {
		return
	}
	if info.Origin.Parent == "" {
		t.roots = append(t.roots, info.Context)
	}
	t.children[info.Origin.Parent] = append(t.children[info.Origin.Parent], info.Context)
}

// members lists a context and its delegates' contexts, however deep.
func (t *tree) members(name string) []string {
	all := []string{name}
	for _, child := range t.children[name] {
		all = append(all, t.members(child)...)
	}
	return all
}

// root returns the root context that a context is in: itself, if it is no delegate's.
func (t *tree) root(name string) string {
	for t.infos[name].Origin.Parent != "" {
		name = t.infos[name].Origin.Parent
	}
	return name
}

// forksFirst orders roots so that each comes after the forks that share its log, or the log of a
// delegate of it.
func (t *tree) forksFirst(roots []string) (ordered []string) {
	forks := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(t.infos)) {
		for _, shared := range t.infos[name].Shares {
			forks[t.root(shared)] = append(forks[t.root(shared)], t.root(name))
		}
	}
	wanted := setOf(roots)
	var visit func(root string)
	visit = func(root string) {
		if !wanted[root] {
			return
		}
		wanted[root] = false // it has its place, or is about to
		for _, fork := range forks[root] {
			visit(fork)
		}
		ordered = append(ordered, root)
	}
	for _, root := range roots {
		visit(root)
	}
	return ordered
}

// withoutNeeded leaves out the roots that are shared by forks which stay. If they are named, it is
// an error that one is needed.
func (t *tree) withoutNeeded(chosen []string, named bool) ([]string, error) {
	for {
		needed, goes := map[string]error{}, setOf(chosen)
		for _, fork := range slices.Sorted(maps.Keys(t.infos)) {
			if goes[t.root(fork)] {
				continue
			}
			for _, shared := range t.infos[fork].Shares {
				if root := t.root(shared); needed[root] == nil {
					needed[root] = &store.NeededError{Context: shared, Fork: fork}
				}
			}
		}
		var rest []string
		for _, name := range chosen {
			if err := needed[name]; err != nil && named {
				return nil, err
			} else if err == nil {
				rest = append(rest, name)
			}
		}
		if len(rest) == len(chosen) {
			return chosen, nil
		}
		chosen = rest
	}
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
