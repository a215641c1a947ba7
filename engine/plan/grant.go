package plan

import (
	"context"
	"slices"

	"obelus/store"
)

// Grant returns the values that scopes let an instance see, by kind. In reads, if it is not nil, it
// records the newest seq that the value of each scope came from.
func Grant(ctx context.Context, resolver store.Resolver, scopes []store.Path, instance string, reads map[string]int64) (map[string]any, error) {
	granted := map[string]any{}
	scopes = slices.Clone(scopes)
	slices.SortFunc(scopes, func(a, b store.Path) int { return len(a.String()) - len(b.String()) })
	for n, scope := range scopes {
		if slices.ContainsFunc(scopes[:n], func(wider store.Path) bool { return wider.Contains(scope) }) {
			continue
		}
		resolved, err := resolver.Resolve(ctx, scope, instance)
		if err != nil {
			return nil, err
		}
		if resolved.Exists {
			if reads != nil {
				reads[scope.String()] = slices.Max(resolved.From)
			}
			kind := scope.Kind()
			granted[kind] = store.Joined(granted[kind], scope.Segments(), store.Set, resolved.Value)
		}
	}
	return granted, nil
}
