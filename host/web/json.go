package web

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/engine/journal"
	"obelus/engine/spell"
	"obelus/host/internal/setting"
	"obelus/host/web/internal/api"
	"obelus/store"
)

// write answers with a value as JSON, on one line.
func write(w http.ResponseWriter, status int, v any) error {
	return writeJSON(w, status, append(store.EncodeJSON(v), '\n'))
}

// list builds the text of an array element by element.
type list struct {
	text  []byte
	begun bool
}

func (l *list) add(v any) {
	separator := ",\n"
	if !l.begun {
		separator, l.begun = "[", true
	}
	l.text = append(append(l.text, separator...), store.EncodeJSON(v)...)
}

func (l *list) end() []byte {
	if !l.begun {
		l.text = append(l.text, '[')
	}
	return append(l.text, "]\n"...)
}

// listOf returns the text of an array of elements, each converted by shown.
func listOf[T any](all []T, shown func(T) (any, error)) ([]byte, error) {
	var l list
	for _, v := range all {
		element, err := shown(v)
		if err != nil {
			return nil, err
		}
		l.add(element)
	}
	return l.end(), nil
}

// read decodes a request's body, which must be one object with the fields of the value and no
// others. An empty body is an empty object.
func read(r *http.Request, into any) error {
	defer release(r) // the answer may take as long as a run
	return readHeld(r, into)
}

// release gives back the room that a request's body takes.
func release(r *http.Request) {
	if b, ok := r.Body.(*body); ok {
		b.release()
	}
}

// readHeld is read without giving back the body's room.
func readHeld(r *http.Request, into any) error {
	body, err := readBody(r)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	v, err := store.DecodeGiven(body, store.MaxDepth+1) // the value of a field may be as deep as MaxDepth
	if err != nil {
		return wrong("the body must be a JSON object: %s", err)
	}
	if v == nil {
		return nil
	}
	if errs := bodies.Decode(v, into); errs != nil {
		return wrong("%s", errs)
	}
	return nil
}

// bodies is the form of requests' bodies.
var bodies = setting.Form{Noun: "field", Root: "the body", JSON: true}

// readBody reads a request's body, without a byte order mark at its beginning.
func readBody(r *http.Request) ([]byte, error) {
	text, err := readBytes(r)
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

// readBytes reads all of a request's body. A body that breaks off is the client's error.
func readBytes(r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(r.Body)
	if b, ok := r.Body.(*body); ok && err == nil && !b.hold(decodedSize(text)) {
		err = errCrowded
	}
	var large *http.MaxBytesError
	var slow net.Error
	if err == nil || errors.Is(err, errCrowded) || errors.As(err, &large) || errors.As(err, &slow) && slow.Timeout() {
		return text, err
	}
	return nil, wrong("the body can't be read to its end: %s", err)
}

// anyQuery is the query of a route that ignores its parameters.
const anyQuery = "*"

// checkQuery returns an error for parameters other than those named, and for one that is given
// several times though it has one value.
func checkQuery(r *http.Request, names string) error {
	if names == anyQuery {
		return nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return wrong("the query %s can't be read: %v", quoted(r.URL.RawQuery), err)
	}
	known := strings.Fields(names)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return wrong("there is no parameter %s%s", quoted(name), suggestion(name, known))
		case len(values[name]) > 1 && api.Parameters[name].Schema["type"] != "array":
			return wrong("the parameter %s is given %d times: give it once", name, len(values[name]))
		}
	}
	return nil
}

// suggestion returns "did you mean" for a probable spelling mistake, else "".
func suggestion(name string, known []string) string {
	if near := spell.Nearest(name, known); near != "" {
		return " (did you mean " + quoted(near) + "?)"
	}
	return ""
}

// query reads parameters, and keeps the first error.
type query struct {
	values url.Values
	err    error
}

func queryOf(r *http.Request) *query { return &query{values: r.URL.Query()} }

func (q *query) text(name string) string { return q.values.Get(name) }

// after reads a position after which to begin. 0 is the beginning.
func (q *query) after() int64 {
	if q.text("after") == "0" {
		return 0
	}
	return q.seq("after")
}

// seq reads a whole number above 0. It returns 0 for none.
func (q *query) seq(name string) int64 {
	text := q.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		q.err = wrong("%s=%s: it must be a whole number above 0", name, text)
	}
	return n
}

// limit reads the number of items in a page: a default number unless it is given, and at most
// mostPage.
func (q *query) limit(usual int64) int64 {
	limit := q.seq("limit")
	switch {
	case limit > mostPage:
		q.err = wrong("limit=%d: a page has at most %d of them", limit, mostPage)
	case limit == 0 && q.err == nil:
		limit = usual
	}
	return limit
}

func (q *query) time(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.err = wrong("%s=%s: it must be a time such as 2026-01-31T12:00:00Z", name, text)
	}
	return t
}

// outcomes reads a list of call outcomes, separated by commas.
func (q *query) outcomes(name string) []string {
	if q.text(name) == "" {
		return nil
	}
	words := strings.Split(q.text(name), ",")
	for _, word := range words {
		if !slices.Contains(journal.Outcomes(), word) {
			q.err = wrong("%s=%s: there is no such status%s", name, word, suggestion(word, journal.Outcomes()))
		}
	}
	return words
}

func (q *query) path(name string) store.Path {
	text := q.text(name)
	if text == "" {
		return store.Path{}
	}
	path, err := store.ParseTyped(text)
	if err != nil {
		q.err = wrong("%s: %s", name, err)
	}
	return path
}
