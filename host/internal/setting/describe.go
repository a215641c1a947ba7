package setting

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Field is a field of a table.
type Field struct {
	Name     string
	About    string // for help and editors
	Type     reflect.Type
	Kind     string // the tag of that name
	Required string // the tag of that name
	Example  string // the tag of that name

	index []int
	zero  int64
}

// table is a struct with the tag that names its fields.
type table struct {
	of  reflect.Type
	tag string
}

var fieldsOf sync.Map // of structs that were decoded, by table

// Fields is [Form.Fields] for fields that the tag json names.
func Fields(t reflect.Type) []Field { return new(Form).Fields(t) }

// Fields lists the fields of a struct, with those of embedded ones, in their order. The list is
// shared.
func (f *Form) Fields(t reflect.Type) (fields []Field) {
	key := table{t, cmp.Or(f.Tag, "json")}
	if known, ok := fieldsOf.Load(key); ok {
		return known.([]Field)
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get(key.tag), ",")
		if name == "" || name == "-" {
			continue
		}
		zero, _ := strconv.ParseInt(field.Tag.Get("zero"), 10, 64) // 0 without the tag
		fields = append(fields, Field{
			Name: name, About: field.Tag.Get("jsonschema"), Type: field.Type, index: field.Index, zero: zero,
			Kind: field.Tag.Get("kind"), Required: field.Tag.Get("required"), Example: field.Tag.Get("example"),
		})
	}
	fieldsOf.Store(key, fields)
	return fields
}

// shortField returns the field of a struct whose value may stand in place of the table.
func shortField(t reflect.Type) (reflect.StructField, bool) {
	for field := range t.Fields() {
		if field.Tag.Get("short") != "" {
			return field, true
		}
	}
	return reflect.StructField{}, false
}

// IsEmbedded reports whether the field is one of an embedded struct.
func (f Field) IsEmbedded() bool { return len(f.index) > 1 }

// helpWidth is the width of the lines of help.
const helpWidth = 82

// Help lists fields for people, each with its description beside it.
func Help(fields []Field) string {
	width := 0
	for _, field := range fields {
		width = max(width, len(field.Name))
	}
	var b strings.Builder
	for _, field := range fields {
		text := Paragraph(field.About, width+4)
		b.WriteString(fmt.Sprintf("  %-*s  ", width, field.Name) + strings.TrimLeft(text, " "))
	}
	return b.String()
}

// Paragraph returns a text in lines that begin with so many spaces.
func Paragraph(text string, indent int) string {
	var b strings.Builder
	line := strings.Repeat(" ", indent-1)
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line))+1+len([]rune(word)) > helpWidth {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", indent-1)
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// Class writes a struct as a class for editors, in LuaCATS, with a comment that may be empty, and
// the classes of its fields behind it.
func (f *Form) Class(name, about string, t reflect.Type) string {
	var b, others strings.Builder
	if about != "" {
		about = "---" + about + "\n"
	}
	fmt.Fprintf(&b, "%s---@class %s\n", about, name)
	for _, field := range f.Fields(t) {
		mark := "?"
		if field.Required != "" {
			mark = ""
		}
		class := name + "." + field.Name
		kind := f.annotation(field.Type, field.Kind, class, &others)
		b.WriteString(strings.TrimRight("---@field "+field.Name+mark+" "+kind+" "+field.About, " ") + "\n")
	}
	return b.String() + others.String()
}

// annotation returns the type of a field for editors. The class of a table of its own is written to
// others.
func (f *Form) annotation(t reflect.Type, kind, class string, others *strings.Builder) string {
	if kind, ok := f.kindOf(t, kind); ok {
		if kind.Table == nil {
			return kind.Type
		}
		t = kind.Table
	}
	switch t.Kind() {
	case reflect.Struct:
		class = cmp.Or(f.Classes[t], class)
		others.WriteString("\n" + f.Class(class, "", t))
		if _, ok := shortField(t); ok {
			return "string|" + class
		}
		return class
	case reflect.Map:
		element := f.annotation(t.Elem(), "", class, others)
		if of, ok := reflect.Zero(t).Interface().(Named); ok {
			return "{ " + strings.Join(of.Names(), "?: "+element+", ") + "?: " + element + " }"
		}
		return "table<string, " + element + ">"
	case reflect.Slice:
		element := f.annotation(t.Elem(), "", class, others)
		if t.Elem().Kind() == reflect.Struct {
			return "table<string, " + element + ">"
		}
		return element + "[]"
	}
	return f.annotation(t.Elem(), "", class, others) // of a pointer
}
