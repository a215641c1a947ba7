package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/store"
)

// refuseEscaped refuses a meta-property's text that was escaped as data of a call's
// parameters is.
func refuseEscaped(text string) error {
	path, escaped := strings.CutPrefix(text, store.Dagger+store.Dagger)
	if !escaped {
		return nil
	}
	return fmt.Errorf("%q begins with two †, as data does that is no reference (in a plan's function ref %q gives the reference %q; text(v) takes the second † off)",
		text, path, store.Dagger+path)
}

// Literal returns a value of an [Ask] as a [Solution] says it: a text that begins with †,
// here or within, comes with a second one, so that it is not taken for an expression. Keys
// stay as they are, and what holds no such text is not copied.
func Literal(v any) any {
	made, _ := escape(v)
	return made
}

// escape reports whether it changes anything.
func escape(v any) (made any, changed bool) {
	switch v := v.(type) {
	case nil, bool, json.Number, float64, int, int64:
		return v, false
	case string:
		if strings.HasPrefix(v, store.Dagger) {
			return store.Dagger + v, true
		}
		return v, false
	case []any:
		list := v
		for i, e := range v {
			if made, changed := escape(e); changed {
				if &list[0] == &v[0] {
					list = slices.Clone(v)
				}
				list[i] = made
			}
		}
		return list, len(v) > 0 && &list[0] != &v[0]
	case map[string]any:
		var object map[string]any
		for key, e := range v {
			if made, changed := escape(e); changed {
				if object == nil {
					object = maps.Clone(v)
				}
				object[key] = made
			}
		}
		if object == nil {
			return v, false
		}
		return object, true
	}
	other, err := store.FromGo(v, "")
	if err != nil {
		return v, false // a solution with it is refused
	}
	made, _ = escape(other)
	return made, true
}
