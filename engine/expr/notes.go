package expr

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"obelus/engine/internal/phrase"
	"obelus/store"
)

// notesKey is the key of the notes in the context of an evaluation.
type notesKey struct{}

// Notes are what evaluations come across that is seldom meant, and changes no value.
type Notes struct{ first string }

// NotedIn returns a context whose evaluations add to the notes.
func (n *Notes) NotedIn(ctx context.Context) context.Context {
	return context.WithValue(ctx, notesKey{}, n)
}

// First returns the first note, a sentence for people; empty for none.
func (n *Notes) First() string { return n.first }

// add keeps a note, if it is the first.
func (n *Notes) add(format string, args ...any) {
	if n.first == "" {
		n.first = fmt.Sprintf(format, args...)
	}
}

// notes returns where an evaluation adds a note; nil where none is wanted any more.
func (ev *evaluation) notes() *Notes {
	notes, ok := ev.ctx.Value(notesKey{}).(*Notes)
	if !ok || notes.first != "" {
		return nil
	}
	return notes
}

// noteUnlike notes that a text and a number were compared, if they were and it matters.
func (ev *evaluation) noteUnlike(matters bool) {
	pair := ev.unlike
	ev.unlike = nil
	if pair == nil || !matters {
		return
	}
	if notes := ev.notes(); notes != nil {
		notes.add("%s compares %s with %s, which are never equal (input of the form key=5 is a text, and key:=5 a number; int(…) makes a number of a text)",
			ev.expr, described(pair[0]), described(pair[1]))
	}
}

// described is a text or a number with its type.
func described(v any) string {
	if text, ok := v.(string); ok {
		return "the text " + string(store.EncodeJSON(phrase.Shorten(text)))
	}
	return "the number " + string(store.EncodeJSON(v))
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// isAnyNumber reports whether a value is a number, of any size.
func isAnyNumber(v any) bool {
	_, large := v.(json.Number)
	return large || isNumber(v)
}

// NoteCondition notes that the value of a condition is a text that holds and says that it does not.
func (n *Notes) NoteCondition(e *Expr, v any) {
	text, ok := v.(string)
	if !ok || !saysNo(text) {
		return
	}
	meant := `compare it, as in … == "true"`
	if path, ok := e.Reference(); ok {
		meant = fmt.Sprintf(`compare it, as in %s == "true"`, path)
		if path.Kind() == "input" && len(path.Segments()) > 0 {
			meant = fmt.Sprintf("did you mean the input %s:=false?", strings.Join(path.Segments(), "."))
		}
	}
	n.add("%s is the text %s, and holds as every text does: %s", e, store.EncodeJSON(text), meant)
}

// saysNo reports whether a text is a word for false.
func saysNo(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "false", "0", "no", "off", "null", "":
		return true
	}
	return false
}
