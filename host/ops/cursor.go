package ops

import (
	"strings"
	"time"

	"obelus/store"
)

// Cursor is the text of the place of a context in a list, with which the list goes on after it.
func Cursor(mark store.ContextMark) string {
	return mark.Updated.UTC().Format(time.RFC3339Nano) + "~" + mark.Context
}

// ReadCursor reads a [Cursor]. ok is false for a text that is none, which gives the beginning.
func ReadCursor(text string) (mark store.ContextMark, ok bool) {
	at, name, _ := strings.Cut(text, "~")
	updated, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || store.CheckStoredContext(name) != nil {
		return mark, false
	}
	return store.ContextMark{Updated: updated, Context: name}, true
}
