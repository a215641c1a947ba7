package engine

import (
	"slices"
	"strconv"
)

// Overlay lays b over a: objects key by key, and an object whose keys are
// indices of an array over that array's elements; anything else takes a's
// place. It changes neither.
func Overlay(a, b any) any {
	if list, ok := a.([]any); ok {
		return overlayElements(list, b)
	}
	x, ok := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if !ok || !ok2 {
		return b
	}
	merged := make(map[string]any, len(x)+len(y))
	for key, v := range x {
		merged[key] = v
	}
	for key, v := range y {
		if old, ok := x[key]; ok {
			v = Overlay(old, v)
		}
		merged[key] = v
	}
	return merged
}

func overlayElements(list []any, b any) any {
	object, ok := b.(map[string]any)
	merged := slices.Clone(list)
	for key, v := range object {
		i, err := strconv.Atoi(key)
		switch {
		case err != nil || i < 0 || i > len(merged):
			return b
		case i == len(merged):
			merged = append(merged, v)
		default:
			merged[i] = Overlay(merged[i], v)
		}
	}
	if !ok {
		return b
	}
	return merged
}

// With gives the arguments that a person is shown with corrections laid over
// them, for [Decision.Arguments]; nil without any.
func (h *Hold) With(set map[string]any) map[string]any {
	if len(set) == 0 {
		return nil
	}
	arguments, _ := Overlay(map[string]any(h.Arguments), set).(map[string]any)
	return arguments
}
