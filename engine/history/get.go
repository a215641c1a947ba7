package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/spell"
	"obelus/store"
)

// MissingError is an expression that has no value in a context.
type MissingError struct {
	Context string
	Missing *expr.Missing
}

func (e *MissingError) Error() string {
	switch names := e.Missing.Names(); {
	case e.Missing.Member != nil:
		return e.Missing.Error() + ", in context " + e.Context
	case len(names) == 1:
		return names[0] + " is missing in context " + e.Context
	default:
		return strings.Join(names, " and ") + " are missing in context " + e.Context
	}
}

// maxInstances is in how many instances Meant looks.
const maxInstances = 100

// Meant returns a hint at the path that a missing one may be meant for, such as ` (did you mean
// "†state.user"?)`, or nothing: a value of another instance, or one under nearly that name, as of a
// seq and for an instance as given to [Get]. It reads all of a kind, and so is for people who have
// made a slip and not for programs that ask again and again.
func (e *MissingError) Meant(ctx context.Context, log store.Reader, at int64, instance string) string {
	held, _ := log.Kinds(ctx, e.Context) // where something can't be read there is no hint
	var kinds []string
	for _, k := range held {
		kinds = append(kinds, k.Kind)
	}
	instances := plan.Instances(held)
	r := store.Resolver{Log: log, Context: e.Context, At: at}
	exists := func(path store.Path, instance string) bool {
		value, err := r.Resolve(ctx, path, instance)
		return err == nil && value.Exists
	}
	for _, path := range e.Missing.Paths {
		for _, other := range instances[:min(len(instances), maxInstances)] {
			if other != instance && exists(path, other) {
				return fmt.Sprintf(" (the instance %q has %s)", other, path)
			}
		}
		if below := belowScalar(ctx, r, path, instance); below != "" {
			return " (" + below + ")"
		}
		near := store.KindPath(nearly(path.Kind(), kinds))
		for _, segment := range path.Segments() {
			value, _ := r.Resolve(ctx, near, instance)
			if object, ok := value.Value.(map[string]any); ok {
				segment = nearly(segment, jsonvalue.SortedKeys(object))
			}
			near = near.Child(segment)
		}
		if exists(near, instance) {
			return fmt.Sprintf(" (did you mean %q?)", near)
		}
	}
	return ""
}

// belowScalar says of a missing path that it leads into a value that has nothing below it, and how
// a character of a string is written; it is empty for any other path.
func belowScalar(ctx context.Context, r store.Resolver, path store.Path, instance string) string {
	above := store.KindPath(path.Kind())
	for _, segment := range path.Segments() {
		value, err := r.Resolve(ctx, above, instance)
		if err != nil || !value.Exists {
			return ""
		}
		switch text := value.Value.(type) {
		case map[string]any, []any:
			above = above.Child(segment)
			continue
		case string:
			if i, err := strconv.Atoi(segment); err == nil {
				return fmt.Sprintf("%s is a string%s", above, expr.CharacterAt(text, above.String(), i))
			}
		}
		return fmt.Sprintf("%s is %s, which has nothing below it", above, store.Describe(value.Value))
	}
	return ""
}

// nearly gives a name where there is one like that, or else the nearest, if any.
func nearly(name string, names []string) string {
	if near := spell.Nearest(name, names); near != "" && !slices.Contains(names, name) {
		return near
	}
	return name
}

// ParseRef reads a reference as people type it: without a dagger if it is a plain path, and an
// expression that does not begin with one as it is. Its error is a [*RefError], or an error of
// [expr.Parse].
func ParseRef(text string) (*expr.Expr, error) {
	if strings.HasPrefix(text, store.Dagger) {
		return expr.Parse(text)
	}
	_, err := store.ParsePath(store.Dagger + text)
	switch {
	case err == nil: // perhaps with a dagger in a key
		return expr.Parse(store.Dagger + text)
	case !strings.Contains(text, store.Dagger):
		return nil, &RefError{err}
	}
	return expr.Parse(store.Dagger + "(" + text + ")")
}

// RefError is a reference that can't be read.
type RefError struct{ Err error }

func (e *RefError) Error() string {
	return e.Err.Error() + ` (a key that is no word is quoted: state["first-name"]; in an expression references begin with †)`
}

// Class implements the interface of [store.ClassOf].
func (e *RefError) Class() store.Class { return store.Usage }

func (e *RefError) Unwrap() error { return e.Err }

// Get evaluates an expression over a context, as an instance sees it, as of a seq or, with 0, as of
// now. Its error is a [*MissingError] where the value is missing.
func Get(ctx context.Context, c journal.Context, e *expr.Expr, at int64, instance string) (v any, err error) {
	err = c.Together(ctx, func(newest int64) error {
		v, _, err = get(ctx, c, e, cmp.Or(at, newest), instance)
		return err
	})
	return v, err
}

// get gives beside the value the paths that it was made of.
func get(ctx context.Context, c journal.Context, e *expr.Expr, at int64, instance string) (v any, found []store.Path, err error) {
	v, missing, err := e.Eval(ctx, finding(ctx, store.Resolver{Log: c.Log, Context: c.Name, At: at}, instance, &found))
	if err == nil && missing != nil {
		err = &MissingError{c.Name, missing}
	}
	return v, found, err
}

// finding looks paths up, and notes once each that is there.
func finding(ctx context.Context, r store.Resolver, instance string, found *[]store.Path) expr.Lookup {
	return func(path store.Path) (any, bool, bool, error) {
		resolved, err := r.Resolve(ctx, path, instance)
		if resolved.Exists && !slices.Contains(*found, path) {
			*found = append(*found, path)
		}
		return resolved.Value, resolved.Exists, false, err
	}
}
