package engine

import (
	"maps"
	"slices"

	"obelus/store"
)

// waitIndex finds the calls that wait for a path: under it stand those that
// wait for it or for something below it.
type waitIndex map[store.Path]map[int][]store.Path

func (x waitIndex) add(i int, refs []string) {
	var paths []store.Path
	for _, text := range refs {
		if path, err := store.ParsePath(text); err == nil {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		for _, prefix := range path.Prefixes() {
			if x[prefix] == nil {
				x[prefix] = map[int][]store.Path{}
			}
			x[prefix][i] = paths
		}
	}
}

// take removes the calls that wait for what overlaps a path, and gives them.
func (x waitIndex) take(path store.Path) []int {
	woken := maps.Clone(x[path])
	for _, above := range path.Prefixes() {
		for i, paths := range x[above] {
			if slices.Contains(paths, above) {
				if woken == nil {
					woken = map[int][]store.Path{}
				}
				woken[i] = paths
			}
		}
	}
	for i, paths := range woken {
		for _, waited := range paths {
			for _, prefix := range waited.Prefixes() {
				delete(x[prefix], i)
				if len(x[prefix]) == 0 {
					delete(x, prefix)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(woken))
}
