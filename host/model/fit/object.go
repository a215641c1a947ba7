package fit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"obelus/store"
)

// Object is a JSON object whose members keep their order. In schemas it matters, since a model
// writes its answer in the order of the properties.
type Object []Member

// Member is one name of an [Object] with its value: an Object, a slice, or another JSON value.
type Member struct {
	Name  string
	Value any
}

// Get returns the value of a name; nil if the object lacks it.
func (o Object) Get(name string) any {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) { return appendValue(nil, o) }

// appendValue appends a value as JSON. Objects and lists within one another are written into one
// buffer.
func appendValue(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case Object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, m.Name); err != nil {
				return nil, err
			}
			if b, err = appendValue(append(b, ':'), m.Value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case []any:
		if v == nil {
			return append(b, "null"...), nil
		}
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case string:
		return store.AppendString(b, v), nil
	}
	text, err := JSON(v)
	return append(b, text...), err
}

// Has reports whether the object has a member of a name.
func (o Object) Has(name string) bool {
	return slices.ContainsFunc(o, func(m Member) bool { return m.Name == name })
}

// With returns the object with a member set: in its place, or at the end.
func (o Object) With(name string, value any) Object {
	made := slices.Clone(o)
	for i := range made {
		if made[i].Name == name {
			made[i].Value = value
			return made
		}
	}
	return append(made, Member{name, value})
}

// Without returns the object without the members of some names.
func (o Object) Without(names ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return slices.Contains(names, m.Name) })
}

// Object returns the value of a name as an object; nil if it is none.
func (o Object) Object(name string) Object {
	inner, _ := o.Get(name).(Object)
	return inner
}

// List returns the value of a name as a list; nil if it is none.
func (o Object) List(name string) []any {
	inner, _ := o.Get(name).([]any)
	return inner
}

// Text returns the value of a name as a text; empty if it is none.
func (o Object) Text(name string) string {
	inner, _ := o.Get(name).(string)
	return inner
}

// Parse reads JSON with its objects in their order, each an [Object], and numbers as they are
// written.
func Parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := parseValue(d)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more after the value")
		}
	}
	return v, err
}

func parseValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := Object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			object = append(object, Member{name.(string), v})
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}

// JSON writes a value as JSON, without escapes for HTML.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
