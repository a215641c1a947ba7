package plan

import (
	"fmt"
	"strconv"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/engine/schema"
)

// checkTemplate validates against a schema, nil for none, the part of a value that is known
// before its expressions are resolved.
func checkTemplate(t *expr.Template, s *schema.Schema, name string) error {
	switch {
	case s == nil || t.Expr != nil:
		return nil
	case t.IsFixed():
		return s.Validate(t.Value, name)
	}
	if err := s.Outline(t.Value, name); err != nil {
		return err
	}
	for _, key := range jsonvalue.SortedKeys(t.Object) {
		property, allowed := s.Property(key)
		if !allowed {
			return fmt.Errorf("%s: unknown %q", name, key)
		}
		if err := checkTemplate(t.Object[key], property, phrase.Place(name, []string{key})); err != nil {
			return err
		}
	}
	for i, e := range t.Array {
		if err := checkTemplate(e, s.Item(i), phrase.Place(name, []string{strconv.Itoa(i)})); err != nil {
			return err
		}
	}
	return nil
}
