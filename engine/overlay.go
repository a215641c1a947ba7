package engine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	if !ok {
		return b
	}
	merged := slices.Clone(list)
	for _, at := range indices(object) {
		switch v := object[at.key]; {
		case at.index < 0 || at.index > len(merged):
			return b
		case at.index == len(merged):
			merged = append(merged, v)
		default:
			merged[at.index] = Overlay(merged[at.index], v)
		}
	}
	return merged
}

// index is a key of an object as it stands for an element, below 0 if it does
// not.
type index struct {
	key   string
	index int
}

// indices gives the keys of an object in the order of the elements that they
// stand for, so that each of several new ones follows the one before it.
func indices(object map[string]any) []index {
	all := make([]index, 0, len(object))
	for key := range object {
		i, err := strconv.Atoi(key)
		if err != nil || strconv.Itoa(i) != key { // as in a path
			i = -1
		}
		all = append(all, index{key, i})
	}
	slices.SortFunc(all, func(a, b index) int { return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.key, b.key)) })
	return all
}

// With gives the arguments that a person is shown with corrections, for
// [Decision.Arguments]; nil without any. Each takes the place of what stands at its key,
// in which dots lead into objects and, by an index, into arrays: {"note": "ok",
// "lines.0.amount": 5}.
func (h *Hold) With(set map[string]any) map[string]any {
	if len(set) == 0 {
		return nil
	}
	arguments := any(map[string]any(h.Arguments))
	for _, key := range sortedKeys(set) { // what is above comes before what is below
		arguments = replaceAt(arguments, strings.Split(key, "."), set[key])
	}
	return arguments.(map[string]any)
}

// replaceAt gives a value in which another one stands at a place. It changes neither.
func replaceAt(v any, place []string, there any) any {
	if len(place) == 0 {
		return there
	}
	key, rest := place[0], place[1:]
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any, len(v)+1)
		maps.Copy(object, v)
		object[key] = replaceAt(v[key], rest, there)
		return object
	case []any:
		if i := indices(map[string]any{key: nil})[0].index; i >= 0 && i < len(v) {
			list := slices.Clone(v)
			list[i] = replaceAt(v[i], rest, there)
			return list
		} else if i == len(v) {
			return append(slices.Clip(v), replaceAt(nil, rest, there))
		}
	}
	return map[string]any{key: replaceAt(nil, rest, there)}
}

// argument is the name of the argument that a correction's key leads into, and whether it
// takes the place of all of it.
func argument(key string) (name string, whole bool) {
	name, _, below := strings.Cut(key, ".")
	return name, !below
}
