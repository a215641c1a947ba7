// Package jsonvalue compares JSON values and the places within them, and writes objects.
package jsonvalue

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"obelus/store"
)

// Index is the element that a key stands for, written as in a path.
func Index(key string) (i int, ok bool) {
	i, err := strconv.Atoi(key)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == key
}

// ComparePlaces orders outer places before inner ones, and elements by their indices.
func ComparePlaces(a, b []string) int {
	return slices.CompareFunc(a, b, func(a, b string) int {
		x, isX := Index(a)
		y, isY := Index(b)
		if isX && isY {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a, b)
	})
}

// SameObject reports whether two values are one and the same object.
func SameObject(a, b any) bool {
	x, one := a.(map[string]any)
	y, other := b.(map[string]any)
	return one && other && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
}

// Equal reports whether two values are written alike in JSON: 1 and 1.0 are not.
func Equal(a, b any) bool { return string(store.EncodeJSON(a)) == string(store.EncodeJSON(b)) }

// SortedKeys gives the keys of a map; it is called so often that they are put in
// one piece.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
