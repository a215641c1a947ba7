package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	gotypes "github.com/google/jsonschema-go/jsonschema"

	"obelus/store"
)

// ForEncoding returns the JSON Schema of what encoding/json writes for the values of a Go type.
// A type that writes itself as JSON ([json.Marshaler]) may write any value, but for those of the
// standard library whose form is known. Its error says which type has no schema: a channel, a
// function, a type that contains itself, or a field that encoding/json names or writes otherwise
// than its type says.
func ForEncoding(t reflect.Type) (map[string]any, error) {
	return forGoType(t, reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]())
}

// ForDecoding is as [ForEncoding], for the values that encoding/json reads into a Go type. An
// interface with methods has no schema, since nothing can be read into it.
func ForDecoding(t reflect.Type) (map[string]any, error) {
	return forGoType(t, reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]())
}

// knownForms are the types of the standard library whose form in JSON is known and is not that of
// their kind.
var knownForms = map[reflect.Type]*gotypes.Schema{
	reflect.TypeFor[big.Float]():   {Type: "string"},
	reflect.TypeFor[big.Int]():     {Type: "integer"},
	reflect.TypeFor[big.Rat]():     {Type: "string"},
	reflect.TypeFor[json.Number](): {Type: "number"},
	reflect.TypeFor[slog.Level]():  {Type: "string"},
	reflect.TypeFor[time.Time]():   {Type: "string", Format: "date-time"},
}

// anyForm accepts every value. It lists all types, since the library takes a schema without types
// to accept null alone where the Go type is a pointer.
func anyForm() *gotypes.Schema {
	return &gotypes.Schema{Types: []string{"null", "boolean", "number", "string", "array", "object"}}
}

func forGoType(t reflect.Type, ownForm, ownText reflect.Type) (map[string]any, error) {
	forms := goForms{ownForm, ownText, maps.Clone(knownForms), map[reflect.Type]bool{}}
	if err := forms.add(t); err != nil {
		return nil, err
	}
	schema, err := gotypes.ForType(t, &gotypes.ForOptions{TypeSchemas: forms.known})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	read, err := store.DecodeJSON(text)
	object, _ := read.(map[string]any)
	if object == nil { // a schema that accepts every value may be true
		object = map[string]any{}
	}
	return object, err
}

// goForms collects the types within a Go type whose form in JSON is not that of their kind.
type goForms struct {
	ownForm, ownText reflect.Type // the interfaces by which a type brings its own form or text
	known            map[reflect.Type]*gotypes.Schema
	seen             map[reflect.Type]bool
}

// add adds a type and the types within it.
func (f *goForms) add(t reflect.Type) error {
	if f.seen[t] || f.known[t] != nil {
		return nil
	}
	f.seen[t] = true
	decoding := f.ownForm == reflect.TypeFor[json.Unmarshaler]()
	kind, pointer := t.Kind(), reflect.PointerTo(t)
	switch isPointer := kind == reflect.Pointer; {
	case !isPointer && kind != reflect.Interface && pointer.Implements(f.ownForm):
		f.known[t] = anyForm()
		return nil
	case !isPointer && kind != reflect.Interface && pointer.Implements(f.ownText):
		// Where only a pointer writes itself as text, a value does so only in some places.
		if f.known[t] = anyForm(); decoding || t.Implements(f.ownText) {
			f.known[t] = &gotypes.Schema{Type: "string"}
		}
		return nil
	}
	switch kind {
	case reflect.Interface:
		if decoding && t.NumMethod() > 0 {
			return fmt.Errorf("nothing can be read from JSON into %v, an interface with methods", t)
		}
	case reflect.Slice:
		if f.isBytes(t) {
			f.known[t] = &gotypes.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
			return nil
		}
		return f.add(t.Elem())
	case reflect.Pointer, reflect.Array, reflect.Map:
		return f.add(t.Elem())
	case reflect.Struct:
		return f.addFields(t)
	}
	return nil
}

// isBytes reports whether encoding/json has a slice in base64.
func (f *goForms) isBytes(t reflect.Type) bool {
	elem := t.Elem()
	pointer := reflect.PointerTo(elem)
	return elem.Kind() == reflect.Uint8 && !pointer.Implements(f.ownForm) && !pointer.Implements(f.ownText)
}

// addFields adds the types of a struct's fields, and refuses the fields for which the schema would
// say something else than encoding/json does.
func (f *goForms) addFields(t reflect.Type) error {
	names := map[string]bool{}
	for _, field := range reflect.VisibleFields(t) {
		tag := field.Tag.Get("json")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if field.Anonymous {
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() != reflect.Struct && field.IsExported() || name != "" {
				return fmt.Errorf("the embedded field %v.%s has a name of its own in JSON: make it a plain field", t, field.Name)
			}
			continue
		}
		if name == "" {
			name = field.Name
		}
		if names[name] {
			return fmt.Errorf("%v has two fields that are called %q in JSON", t, name)
		}
		names[name] = true
		if slices.Contains(strings.Split(options, ","), "string") {
			return fmt.Errorf("the field %v.%s is a text in JSON, whatever its type: leave the option \"string\" out", t, field.Name)
		}
		if err := f.add(field.Type); err != nil {
			return err
		}
	}
	return nil
}
