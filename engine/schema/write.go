package schema

import (
	"fmt"
	"strconv"

	"obelus/engine/internal/jsonvalue"
	"obelus/store"
)

// Accepts checks a write at a path against the schema that is declared for the path's kind: its
// constraints on the value written, and on the values above it as a whole. value returns the value
// of the path, or of one above it, after the write: it is checked where the method joins the data
// to the value before.
func (s *Schema) Accepts(path store.Path, method store.Method, data any, value func(store.Path) (any, error)) error {
	part, err := s.Below(path, value, func(s *Schema, above store.Path) error {
		for at := range s.parts() {
			partial := s.PartialSchemas[at]
			if partial == nil {
				continue
			}
			v, err := value(above)
			if err != nil {
				return err
			}
			if err := s.part(partial).holdsAt(above, v); err != nil {
				return err
			}
		}
		return nil
	})
	if part == nil || err != nil {
		return err
	}
	v, err := value(path)
	if err != nil {
		return err
	}
	return part.AcceptsIn(path, method, data, v)
}

// AcceptsIn checks data that has joined a value by a method, and the constraints on the value as a
// whole: checking all of the value would take longer with each write.
func (s *Schema) AcceptsIn(path store.Path, method store.Method, data, v any) error {
	if s.dynamic {
		return s.holdsAt(path, v)
	}
	switch v := v.(type) {
	case []any:
		n := 1
		if list, ok := data.([]any); ok && method == store.Concat {
			n = len(list)
		} else if method != store.Push {
			return s.holdsAt(path, v)
		}
		for i := max(len(v)-n, 0); i < len(v); i++ {
			if item := s.Item(i); item != nil {
				if err := item.holdsAt(path.Child(strconv.Itoa(i)), v[i]); err != nil {
					return err
				}
			}
		}
	case map[string]any:
		object, ok := data.(map[string]any)
		if !ok || method != store.Assign && method != store.Merge {
			return s.holdsAt(path, v)
		}
		inner := method
		if method == store.Assign {
			inner = store.Set
		}
		for _, key := range jsonvalue.SortedKeys(object) {
			property, err := s.fieldAt(key, path.Child(key), path)
			if property != nil && err == nil {
				err = property.AcceptsIn(path.Child(key), inner, object[key], v[key])
			}
			if err != nil {
				return err
			}
		}
	default:
		return s.holdsAt(path, v)
	}
	for at := range s.parts() {
		if err := s.part(shallow(at)).holdsAt(path, v); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) holdsAt(path store.Path, v any) error {
	if err := s.Validate(v, path.String()); err != nil {
		return fmt.Errorf("it breaks the schema declared for %s: %w", path.Kind(), err)
	}
	return nil
}

// Below returns the schema at a path within the schema that is declared for the path's kind; nil
// for none. The value above a segment decides whether it is an index or a key. Every schema on the
// way is passed to a function, which may be nil.
func (s *Schema) Below(path store.Path, value func(store.Path) (any, error), pass func(s *Schema, above store.Path) error) (*Schema, error) {
	prefixes := path.Prefixes()
	for n, segment := range path.Segments() {
		above := prefixes[n]
		if pass != nil {
			if err := pass(s, above); err != nil {
				return nil, err
			}
		}
		i, isIndex := jsonvalue.Index(segment)
		if isIndex {
			v, err := value(above)
			if err != nil {
				return nil, err
			}
			_, isIndex = v.([]any)
		}
		var err error
		if isIndex {
			s, err = s.elementAt(i, path, above)
		} else {
			s, err = s.fieldAt(segment, path, above)
		}
		if s == nil || err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Schema) elementAt(i int, path, above store.Path) (*Schema, error) {
	if want, ok := s.holds("array"); !ok {
		return nil, fmt.Errorf("%s: the schema declared for %s wants %s at %s, which holds no elements", path, path.Kind(), want, above)
	}
	return s.Item(i), nil
}

func (s *Schema) fieldAt(name string, path, above store.Path) (*Schema, error) {
	if want, ok := s.holds("object"); !ok {
		return nil, fmt.Errorf("%s: the schema declared for %s wants %s at %s, which holds no %q", path, path.Kind(), want, above, name)
	}
	for at := range s.parts() {
		if at.PropertyNames == nil {
			continue
		}
		if err := s.part(at.PropertyNames).Validate(name, ""); err != nil {
			return nil, fmt.Errorf("%s: the schema declared for %s does not allow the key %q: %w", path, path.Kind(), name, err)
		}
	}
	property, allowed := s.Property(name)
	if !allowed {
		return nil, fmt.Errorf("%s: the schema declared for %s does not allow %q", path, path.Kind(), name)
	}
	return property, nil
}
