package store

import (
	"context"
	"maps"
	"slices"
)

// ListReplaced returns the first path at or below a path at which merging a value replaces an array
// by an object with nothing but indexes for keys, which most likely was meant for a part of the
// array; the zero Path if there is none.
func (r Resolver) ListReplaced(ctx context.Context, path Path, instance string, v any) (list Path, err error) {
	object, ok := v.(map[string]any)
	if !ok || len(object) == 0 {
		return Path{}, nil
	}
	keys := slices.Sorted(maps.Keys(object))
	if !slices.ContainsFunc(keys, func(key string) bool { return !isDigits(key) }) {
		there, err := r.Resolve(ctx, path, instance)
		if err != nil {
			return Path{}, err
		}
		if _, isList := there.Value.([]any); isList {
			return path, nil
		}
	}
	for _, key := range keys {
		if list, err = r.ListReplaced(ctx, path.Child(key), instance, object[key]); err != nil || !list.IsZero() {
			break
		}
	}
	return list, err
}
