// Package setting decodes tables of Lua and objects of JSON into tagged structs: settings, options
// of activities, bodies of requests. The same structs give the lists of fields that help prints,
// and the classes that editors read. The tags of a field are
//
//	json:"name"          its name; a field without the tag is no part of the table
//	jsonschema:"text"    its description
//	kind:"name"          a [Kind]; without it, that of the field's type
//	zero:"-1"            the number to keep where the table says 0, and 0 stands for the default
//	required:"a plan"    that the table must have it, and what it needs then
//	short:"true"         that its value may stand in place of the table
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

	// JSON is set for objects of JSON: errors use the words of JSON, a text may be empty, and a field
	// that is null is not given.
	JSON bool
}

// Checker is a struct whose fields depend on each other. CheckTable is called once all of them are
// read. A sentence made by [Errorf] follows the path of the table; any other text, a colon.
type Checker interface{ CheckTable() error }

// Decode reads a table into the struct that into points to, and returns everything that is wrong.
func (f *Form) Decode(v, into any) Errors {
	errs := within(f.table(v, reflect.ValueOf(into).Elem()))
	for _, e := range errs {
		e.root = f.Root
	}
	return errs
}

// Table reads a table whose fields have these names, each by read. A null is not read.
func (f *Form) Table(v any, names []string, read func(name string, v any) error) error {
	given, ok := v.(map[string]any)
	if list, isList := v.([]any); isList && len(list) == 0 && !f.JSON { // an empty table of Lua may be either
		given, ok = nil, true
	}
	if !ok {
		return f.wrongType(f.word("a table", "an object"), v)
	}
	var errs Errors
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			errs = append(errs, f.unknown(name, names))
			continue
		}
		errs = append(errs, within(read(name, given[name]), name)...)
	}
	return errs.orNil()
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
	fields, names := map[string]Field{}, []string{}
	for _, field := range Fields(to.Type()) {
		fields[field.Name], names = field, append(names, field.Name)
		if _, isTable := v.(map[string]any); field.short && !isTable {
			if _, isText := v.(string); !isText {
				return Errorf("must be a string or a table, not %s", TypeName(v)) // it may be a secret
			}
			if err := f.value(v, to.FieldByIndex(field.index), field.kind); err != nil {
				return err
			}
			return check(to)
		}
	}
	err := f.Table(v, names, func(name string, v any) error {
		field := fields[name]
		if f.JSON && v == nil && field.Type != rawMessage {
			return nil
		}
		err := f.value(v, to.FieldByIndex(field.index), field.kind)
		if at := to.FieldByIndex(field.index); err == nil && field.zero != 0 && at.IsZero() {
			at.SetInt(field.zero)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if field := fields[name]; field.required != "" && to.FieldByIndex(field.index).IsZero() {
			return Errorf("needs %s", field.required)
		}
	}
	return check(to)
}

func check(to reflect.Value) error {
	if checker, ok := to.Addr().Interface().(Checker); ok {
		return checker.CheckTable()
	}
	return nil
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// value reads one value.
func (f *Form) value(v any, to reflect.Value, kind string) error {
	if kind = f.kindOf(to.Type(), kind); kind != "" {
		return f.read(kind, v, to)
	}
	switch to.Kind() {
	case reflect.Pointer:
		made := reflect.New(to.Type().Elem())
		if err := f.value(v, made.Elem(), ""); err != nil {
			return err
		}
		to.Set(made)
		return nil
	case reflect.Struct:
		return f.table(v, to)
	case reflect.Map:
		return f.byName(v, func(name string, v any) error {
			element := reflect.New(to.Type().Elem()).Elem()
			err := f.value(v, element, "")
			if to.IsNil() {
				to.Set(reflect.MakeMap(to.Type()))
			}
			to.SetMapIndex(reflect.ValueOf(name), element)
			return err
		}, f.word("a table", "an object"))
	case reflect.Slice:
		if to.Type().Elem().Kind() == reflect.Struct {
			return f.named(v, to)
		}
		return f.list(v, to)
	}
	to.Set(reflect.ValueOf(v))
	return nil
}

// read reads a value of a kind.
func (f *Form) read(name string, v any, to reflect.Value) error {
	kind := f.kind(name)
	read, err := kind.Read(v)
	switch {
	case err == errUnfit:
		return f.wrongType(kind.Want, v)
	case err != nil:
		return err
	}
	if to.Kind() == reflect.Pointer && to.Type() != reflect.TypeOf(read) {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	to.Set(reflect.ValueOf(read).Convert(to.Type()))
	return nil
}

// list reads a list. The places of its values begin with 1 in Lua, and with 0 in JSON.
func (f *Form) list(v any, to reflect.Value) error {
	list, ok := v.([]any)
	if object, isObject := v.(map[string]any); isObject && len(object) == 0 && !f.JSON {
		ok = true
	}
	if !ok {
		return f.wrongType(f.word("a list", "an array")+" of strings", v)
	}
	to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
	var errs Errors
	for i, e := range list {
		place := i + 1
		if f.JSON {
			place = i
		}
		errs = append(errs, within(f.value(e, to.Index(i), ""), fmt.Sprintf("[%d]", place))...)
	}
	return errs.orNil()
}

// named reads a table of tables by name into a slice of structs, sorted by name.
func (f *Form) named(v any, to reflect.Value) error {
	of := to.Type().Elem()
	field, _ := of.FieldByName("Name")
	return f.byName(v, func(name string, v any) error {
		element := reflect.New(of).Elem()
		if err := f.value(name, element.FieldByIndex(field.Index), field.Tag.Get("kind")); err != nil {
			return err
		}
		err := f.table(v, element)
		to.Set(reflect.Append(to, element))
		return err
	}, "")
}

// byName reads a table whose names are free. Without want an error names its values as the table
// is named.
func (f *Form) byName(v any, read func(name string, v any) error, want string) error {
	given, ok := v.(map[string]any)
	if !ok && want == "" {
		return &Error{say: func(path string) string {
			what := path[strings.LastIndex(path, ".")+1:]
			return path + " " + f.wrongType("a table of "+what+" by name", v).Error()
		}}
	}
	if !ok {
		return f.wrongType(want, v)
	}
	var errs Errors
	for _, name := range slices.Sorted(maps.Keys(given)) {
		errs = append(errs, within(read(name, given[name]), name)...)
	}
	return errs.orNil()
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

// At returns an error as one of the value to which keys lead.
func At(err error, keys ...string) error {
	return within(err, keys...).orNil()
}

// within returns an error about a value as errors of the table in which keys lead to it.
func within(err error, keys ...string) Errors {
	var errs Errors
	switch err := err.(type) {
	case nil:
		return nil
	case Errors:
		errs = err
	case *Error:
		errs = Errors{err}
	case sentence:
		errs = Errors{{say: func(path string) string { return strings.TrimPrefix(path+" "+string(err), " ") }}}
	default:
		errs = Errors{{say: func(path string) string { return strings.TrimPrefix(path+": "+err.Error(), ": ") }}}
	}
	for _, e := range errs {
		e.Keys = slices.Concat(keys, e.Keys)
	}
	return errs
}

// unknown returns the error about a field that there is not.
func (f *Form) unknown(name string, names []string) *Error {
	hint := luaerr.DidYouMean(name, names)
	return &Error{Keys: []string{name}, say: func(path string) string {
		if path == name {
			path = strconv.Quote(name)
		}
		return strings.TrimPrefix(f.Root+": unknown "+f.Noun+" "+path+hint, ": ")
	}}
}

// wrongType returns the error for a value that must be something else.
func (f *Form) wrongType(want string, v any) error {
	if f.JSON {
		return Errorf("must be %s, not %s", want, store.Describe(v))
	}
	return WrongType(want, v)
}
