package store

import (
	"maps"
	"strings"
)

// While a value is being folded, the parts of it that have been changed are
// objects, arrays and texts of its own, which may be changed again in place; all else
// is shared with the messages. So a thousand pushes cost a thousand appends.
type (
	ownObject map[string]any
	ownArray  struct{ items []any }
	ownText   struct{ strings.Builder }
)

// Joined gives a value that another has joined at a place below it, as resolving would. The
// value itself is not changed.
func Joined(v any, below []string, method Method, value any) any {
	joined, _ := apply(v, below, method, value)
	return freeze(joined)
}

// apply joins one operation to the value at a place below v. misfit reports that the operation did
// not fit there and was applied as onto a missing value.
func apply(v any, below []string, method Method, value any) (_ any, misfit bool) {
	if len(below) == 0 {
		return join(v, method, value)
	}
	segment := below[0]
	switch c := own(v).(type) {
	case ownObject:
		c[segment], misfit = apply(c[segment], below[1:], method, value)
		return c, misfit
	case *ownArray:
		i, ok := index(segment)
		if !ok || i > len(c.items) {
			child, _ := apply(nil, below[1:], method, value)
			return ownObject{segment: child}, true
		}
		if i == len(c.items) {
			c.items = append(c.items, nil)
		}
		c.items[i], misfit = apply(c.items[i], below[1:], method, value)
		return c, misfit
	}
	child, misfit := apply(nil, below[1:], method, value)
	return ownObject{segment: child}, misfit
}

// join joins a value to another by a method. Nil stands for missing as well as for null: no method
// distinguishes them.
func join(v any, method Method, value any) (_ any, misfit bool) {
	switch method {
	case Merge:
		return merge(v, value), false
	case Assign:
		object, ok := value.(map[string]any)
		if current, fits := own(v).(ownObject); ok && fits {
			maps.Copy(current, object)
			return current, false
		}
		return value, !ok || v != nil
	case Push:
		if current, ok := own(v).(*ownArray); ok {
			current.items = append(current.items, value)
			return current, false
		}
		return &ownArray{[]any{value}}, v != nil
	case Concat:
		return concat(v, value)
	}
	return value, false
}

func concat(v, value any) (_ any, misfit bool) {
	switch more := value.(type) {
	case []any:
		if current, ok := own(v).(*ownArray); ok {
			current.items = append(current.items, more...)
			return current, false
		}
		return value, v != nil
	case string:
		text, ok := v.(*ownText)
		if current, plain := v.(string); plain {
			text, ok = &ownText{}, true
			text.WriteString(current)
		}
		if !ok {
			return value, v != nil
		}
		text.WriteString(more)
		return text, false
	}
	return value, true
}

func merge(v, value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	current, ok := own(v).(ownObject)
	if !ok {
		return value
	}
	for key, e := range object {
		if old, ok := current[key]; ok {
			e = merge(old, e)
		}
		current[key] = e
	}
	return current
}

// own gives an object or array that may be changed: v itself if it is one
// already, else a shallow copy. Anything else it gives back as it is.
func own(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(ownObject, len(v)+1)
		maps.Copy(c, v)
		return c
	case []any:
		return &ownArray{append(make([]any, 0, len(v)+1), v...)}
	}
	return v
}

// freeze makes a plain value of one that was folded. Nothing may change it
// from then on.
func freeze(v any) any {
	switch v := v.(type) {
	case ownObject:
		for key, e := range v {
			v[key] = freeze(e)
		}
		return map[string]any(v)
	case *ownArray:
		for i, e := range v.items {
			v.items[i] = freeze(e)
		}
		return v.items
	case *ownText:
		return v.String()
	}
	return v
}
