package web

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"

	"obelus/host/web/internal/api"
	"obelus/store"
)

// write answers with a value as JSON, on one line.
func write(w http.ResponseWriter, status int, v any) error {
	return writeJSON(w, status, append(store.EncodeJSON(v), '\n'))
}

// list is the text of an array of elements, built one by one.
type list[T any] struct {
	text  []byte
	begun bool
}

func (l *list[T]) add(v T) {
	separator := ",\n"
	if !l.begun {
		separator, l.begun = "[", true
	}
	l.text = append(append(l.text, separator...), store.EncodeJSON(v)...)
}

func (l list[T]) end() []byte {
	if !l.begun {
		l.text = append(l.text, '[')
	}
	return append(l.text, "]\n"...)
}

// schema returns the schema of the array.
func (list[T]) schema() api.Schema { return api.List(api.Of[T]()) }

// release gives back the room that a request's body takes.
func release(r *http.Request) {
	if b, ok := r.Body.(*body); ok {
		b.release()
	}
}

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
