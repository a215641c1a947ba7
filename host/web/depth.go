package web

// toDepth returns a value as far as so many levels of objects and arrays show it, 0 for all. Each
// that is deeper, unless it is empty, is a marker with its type and the number of its entries.
func toDepth(v any, levels int64) any {
	if levels == 0 {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for key, entry := range v {
			shown[key] = withinDepth(entry, levels-1)
		}
		return shown
	case []any:
		shown := make([]any, len(v))
		for i, entry := range v {
			shown[i] = withinDepth(entry, levels-1)
		}
		return shown
	}
	return v
}

// withinDepth returns an entry of a value with at most so many of its levels.
func withinDepth(v any, levels int64) any {
	if levels > 0 {
		return toDepth(v, levels)
	}
	kind, entries := "object", 0
	switch v := v.(type) {
	case map[string]any:
		entries = len(v)
	case []any:
		kind, entries = "array", len(v)
	}
	if entries == 0 {
		return v
	}
	return map[string]any{"…": kind, "entries": entries}
}
