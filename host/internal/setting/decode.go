// Package setting decodes tables of Lua and objects of JSON into tagged structs: settings, options
// of activities, bodies of requests. The same structs give the lists of fields that help prints,
// and the classes that editors read. [Form.Tag] may be another tag than json: parts of the path and
// parameters of the query of a request are tables too. The tags of a field are
//
//	json:"name"          its name; a field without the tag is no part of the table
//	jsonschema:"text"    its description
//	kind:"name"          a [Kind]; without it, that of the field's type
//	zero:"-1"            the number to keep where the table says 0, and 0 stands for the default
//	required:"a plan"    that the table must have it, and what it needs then
//	example:"order-7"    a value for examples
//	short:"true"         that its value, a text, may stand in place of the table
//
// A slice of structs with a field Name is a table by name.
package setting

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"obelus/host/internal/luaerr"
	"obelus/store"
)

// Form is a form of tables: which kinds their values have, and how errors call them.
type Form struct {
	Noun  string          // for a field: "setting", "option"
	Root  string          // for the table as a whole: "the body"; may be empty
	Kinds map[string]Kind // by the tag kind, beside those that every form has

	// Classes names the classes of some structs for editors.
	Classes map[reflect.Type]string

	// Check, if it is set, is called with a table and a pointer to its struct, once all fields are
	// right. A sentence made by [Errorf] follows the path of the table; any other text, a colon.
	Check func(table, of any) error

	// Tag is the tag that names the fields; json unless it is set.
	Tag string

	// JSON is set for objects of JSON: errors use the words of JSON, a text may be empty, and a field
	// that is null is not given.
	JSON bool
}

// Named is a map whose names are not free.
type Named interface{ Names() []string }

// Decode reads a table, to which keys lead, into the struct that into points to. It returns
// everything that is wrong.
func (f *Form) Decode(v, into any, keys ...string) Errors {
	errs := At(f.table(v, reflect.ValueOf(into).Elem()), keys...)
	for _, e := range errs {
		e.root = f.Root
	}
	return errs
}

// Table reads a table with some names, each by read. Without names they are free.
func (f *Form) Table(v any, names []string, read func(name string, v any) error) error {
	given, ok := f.Object(v)
	if !ok {
		return f.wrongType(f.word("a table", "an object"), v)
	}
	var errs Errors
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if names != nil && !slices.Contains(names, name) {
			errs = append(errs, f.unknown(name, names))
			continue
		}
		errs = append(errs, At(read(name, given[name]), name)...)
	}
	return errs.orNil()
}

// Object returns the fields of a table. One of Lua that is empty may be a list.
func (f *Form) Object(v any) (fields map[string]any, ok bool) {
	if list, isList := v.([]any); isList && len(list) == 0 && !f.JSON {
		return nil, true
	}
	fields, ok = v.(map[string]any)
	return fields, ok
}

// word returns the word of Lua or that of JSON.
func (f *Form) word(lua, json string) string {
	if f.JSON {
		return json
	}
	return lua
}

// table reads a struct.
func (f *Form) table(v any, to reflect.Value) error {
	if _, isObject := f.Object(v); !isObject {
		short, ok := shortField(to.Type())
		if _, isText := v.(string); ok && isText {
			return f.value(v, to.FieldByIndex(short.Index), Field{Kind: short.Tag.Get("kind")})
		}
		if ok {
			return Errorf("must be a string or a table, not %s", TypeName(v)) // it may be a secret
		}
	}
	fields := f.Fields(to.Type())
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = field.Name
	}
	err := f.Table(v, names, func(name string, v any) error {
		field := fields[slices.Index(names, name)]
		if f.JSON && v == nil && field.Type != rawMessage {
			return nil
		}
		at := to.FieldByIndex(field.index)
		err := f.value(v, at, field)
		if err == nil && field.zero != 0 && at.IsZero() {
			at.SetInt(field.zero)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, field := range fields {
		if field.Required != "" && to.FieldByIndex(field.index).IsZero() {
			return Errorf("needs %s", field.Required)
		}
	}
	if f.Check == nil {
		return nil
	}
	return f.Check(v, to.Addr().Interface())
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// value reads the value of a field, or one within it.
func (f *Form) value(v any, to reflect.Value, field Field) error {
	if kind, ok := f.kindOf(to.Type(), field.Kind); ok {
		return f.read(kind, v, to)
	}
	field.Kind = "" // it was of a pointer, or a list
	switch to.Kind() {
	case reflect.Pointer:
		made := reflect.New(to.Type().Elem())
		to.Set(made)
		return f.value(v, made.Elem(), field)
	case reflect.Struct:
		return f.table(v, to)
	case reflect.Slice:
		if to.Type().Elem().Kind() != reflect.Struct {
			return f.array(v, to, field)
		}
		if _, ok := f.Object(v); !ok {
			return f.wrongType("a table of "+field.Name+" by name", v)
		}
	}
	return f.byName(v, to, field)
}

// read reads a value of a kind.
func (f *Form) read(kind Kind, v any, to reflect.Value) error {
	if kind.Table != nil {
		table := reflect.New(kind.Table).Elem()
		err := f.table(v, table)
		to.Set(table.Convert(to.Type()))
		return err
	}
	read, err := kind.Read(v)
	switch {
	case err == errUnfit:
		return f.wrongType(kind.Want, v)
	case err != nil || read == nil:
		return err
	}
	if to.Kind() == reflect.Pointer && to.Type() != reflect.TypeOf(read) {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	to.Set(reflect.ValueOf(read).Convert(to.Type()))
	return nil
}

// array reads an array of texts.
func (f *Form) array(v any, to reflect.Value, field Field) error {
	list, ok := v.([]any)
	if !ok {
		return f.wrongType("an array of strings", v)
	}
	to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
	var errs Errors
	for i, e := range list {
		errs = append(errs, At(f.value(e, to.Index(i), field), fmt.Sprintf("[%d]", i))...)
	}
	return errs.orNil()
}

// byName reads a table of values by name into a map, or into a slice of structs.
func (f *Form) byName(v any, to reflect.Value, field Field) error {
	var names []string
	if of, ok := to.Interface().(Named); ok {
		names = of.Names()
	}
	return f.Table(v, names, func(name string, v any) error {
		element := reflect.New(to.Type().Elem()).Elem()
		if to.Kind() == reflect.Slice {
			own, _ := element.Type().FieldByName("Name")
			err := f.value(name, element.FieldByIndex(own.Index), Field{Kind: own.Tag.Get("kind")})
			if err == nil {
				err = f.table(v, element)
			}
			if err == nil {
				to.Set(reflect.Append(to, element))
			}
			return err
		}
		if to.IsNil() {
			to.Set(reflect.MakeMap(to.Type()))
		}
		err := f.value(v, element, field)
		to.SetMapIndex(reflect.ValueOf(name).Convert(to.Type().Key()), element)
		return err
	})
}

// Error is something wrong with a table.
type Error struct {
	Keys []string // lead to the value
	root string   // stands for no keys
	say  func(path string) string
}

// Error names the value by its path.
func (e *Error) Error() string {
	path := strings.ReplaceAll(strings.Join(e.Keys, "."), ".[", "[")
	return e.say(cmp.Or(path, e.root))
}

// Errors is everything that is wrong with a table.
type Errors []*Error

// Error returns the first of them.
func (e Errors) Error() string { return e[0].Error() }

func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// sentence is an error that follows the path of its value without a colon.
type sentence string

func (s sentence) Error() string { return string(s) }

// Errorf returns an error that follows the path of its value as the rest of a sentence.
func Errorf(format string, args ...any) error { return sentence(fmt.Sprintf(format, args...)) }

// Complete returns an error that names the value by itself: its path is not put before it.
func Complete(err error) error {
	if err == nil {
		return nil
	}
	return &Error{say: func(string) string { return err.Error() }}
}

// At returns an error as one of the value to which keys lead; nil for none.
func At(err error, keys ...string) Errors {
	errs, ok := err.(Errors)
	if err != nil && !ok {
		errs = Errors{newError(err)}
	}
	for _, e := range errs {
		e.Keys = slices.Concat(keys, e.Keys)
	}
	return errs
}

func newError(err error) *Error {
	if one, ok := err.(*Error); ok {
		return one
	}
	between := ": "
	if _, ok := err.(sentence); ok {
		between = " "
	}
	return &Error{say: func(path string) string { return strings.TrimPrefix(path+between+err.Error(), between) }}
}

// unknown returns the error about a field that there is not.
func (f *Form) unknown(name string, names []string) *Error {
	return &Error{Keys: []string{name}, say: func(path string) string {
		if path == name {
			path = strconv.Quote(name)
		}
		return strings.TrimPrefix(f.Root+": unknown "+f.Noun+" "+path+luaerr.DidYouMean(name, names), ": ")
	}}
}

// wrongType returns the error for a value that must be something else.
func (f *Form) wrongType(want string, v any) error {
	if f.JSON {
		return Errorf("must be %s, not %s", want, store.Describe(v))
	}
	return WrongType(want, v)
}
