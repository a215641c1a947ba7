package jsonvalue

import (
	"strconv"

	"obelus/store"
)

// ObjectWriter writes a JSON object field by field, without reflection. Names of fields are written
// as they are: they must need no escapes.
type ObjectWriter struct {
	text  []byte
	start int // length of the text before the object's first field
}

// BeginObject returns a writer that appends an object to b.
func BeginObject(b []byte) ObjectWriter {
	b = append(b, '{')
	return ObjectWriter{b, len(b)}
}

func (w *ObjectWriter) name(name string) {
	if len(w.text) > w.start {
		w.text = append(w.text, ',')
	}
	w.text = append(append(append(w.text, '"'), name...), '"', ':')
}

// String writes a field with a text.
func (w *ObjectWriter) String(name, value string) {
	w.name(name)
	w.text = store.AppendString(w.text, value)
}

// NonEmpty writes a field with a text, unless that is empty.
func (w *ObjectWriter) NonEmpty(name, value string) {
	if value != "" {
		w.String(name, value)
	}
}

// Int writes a field with a whole number.
func (w *ObjectWriter) Int(name string, value int64) {
	w.name(name)
	w.text = strconv.AppendInt(w.text, value, 10)
}

// NonZero writes a field with a whole number, unless that is 0.
func (w *ObjectWriter) NonZero(name string, value int64) {
	if value != 0 {
		w.Int(name, value)
	}
}

// True writes a field with true if set, and otherwise none.
func (w *ObjectWriter) True(name string, set bool) {
	if set {
		w.name(name)
		w.text = append(w.text, "true"...)
	}
}

// Object writes a field with an object, unless that is empty.
func (w *ObjectWriter) Object(name string, value map[string]any) {
	if len(value) > 0 {
		w.name(name)
		w.text = store.AppendJSON(w.text, value)
	}
}

// Value writes a field with a value, as [store.AppendJSON] does.
func (w *ObjectWriter) Value(name string, value any) {
	w.name(name)
	w.text = store.AppendJSON(w.text, value)
}

// End ends the object, and returns its text.
func (w *ObjectWriter) End() []byte { return append(w.text, '}') }
