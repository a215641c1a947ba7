package web

import (
	"bytes"
	"context"
	"net/http"

	"golang.org/x/sync/semaphore"

	"obelus/host"
	"obelus/store"
)

// room bounds the bytes of the answers that are being sent, for all clients together: one
// that does not read keeps what is meant for it in memory until it is given up. Small pieces
// have room of their own, so that large ones do not keep them waiting.
type room struct {
	total int64 // of large pieces, and again of small ones
	large *semaphore.Weighted
	small *semaphore.Weighted
}

// forStreams is a room that has the large pieces in common with another, and small ones of its
// own: streams are many, and other answers do not wait for them.
func (o *room) forStreams() *room { return &room{o.total, o.large, semaphore.NewWeighted(o.total)} }

// smallPiece is the size up to which a piece of an answer is small.
const smallPiece = 2 * portion

func newRoom(total int64) *room {
	return &room{total, semaphore.NewWeighted(total), semaphore.NewWeighted(total)}
}

// of gives the room for a piece of so many bytes, and what the piece takes of it: one that is
// larger than all of it is sent when there is no other.
func (o *room) of(size int) (*semaphore.Weighted, int64) {
	if size <= smallPiece {
		return o.small, min(int64(size), o.total)
	}
	return o.large, min(int64(size), o.total)
}

// reserve makes a piece of an answer and finds room for it until leave is called. While there
// is none nothing is held: what was made is dropped, and made anew once there is room. produce
// gives the piece, and may be called several times. places bounds how many make one at once.
func (o *room) reserve(ctx context.Context, places chan struct{}, produce func() ([]byte, error)) (piece []byte, leave func(), err error) {
	var reserved *semaphore.Weighted
	var taken int64
	drop := func() {
		if reserved != nil {
			reserved.Release(taken)
		}
		if taken > muchMemory/4 { // of which there were several copies
			host.ReturnMemory()
		}
		reserved, taken = nil, 0
	}
	for {
		if piece, err = inPlace(ctx, places, produce); err != nil {
			drop()
			return nil, nil, err
		}
		from, need := o.of(len(piece))
		if reserved == from && need <= taken { // as it was made before
			return piece, drop, nil
		}
		drop()
		if from.TryAcquire(need) {
			reserved, taken = from, need
			return piece, drop, nil
		}
		piece = nil
		if err := from.Acquire(ctx, need); err != nil {
			return nil, nil, err
		}
		reserved, taken = from, need
	}
}

// inPlace does something once there is a place.
func inPlace(ctx context.Context, places chan struct{}, do func() ([]byte, error)) ([]byte, error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return do()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errNoRoom is the answer where the room for answers stays taken.
var errNoRoom = &problem{status: http.StatusTooManyRequests, code: "full", message: "the answers that are being sent are too large together", retry: 5}

// respond answers with a value that is read from the log, as JSON.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, value func() (any, error)) error {
	return s.respondText(w, r, func() ([]byte, error) {
		v, err := value()
		if err != nil {
			return nil, err
		}
		return append(store.EncodeJSON(v), '\n'), nil
	})
}

// respondText answers with the text of JSON that is made of what is read from the log.
func (s *Server) respondText(w http.ResponseWriter, r *http.Request, produce func() ([]byte, error)) error {
	text, leave, err := s.reserve(r.Context(), s.room, produce)
	if err != nil {
		return err
	}
	defer leave()
	return writeJSON(w, http.StatusOK, text)
}

// reserve is [room.reserve] of an answer that has not begun.
func (s *Server) reserve(ctx context.Context, from *room, produce func() ([]byte, error)) ([]byte, func(), error) {
	within, cancel := context.WithTimeoutCause(ctx, s.patience.room, errNoRoom)
	defer cancel()
	piece, leave, err := from.reserve(within, s.reading, func() ([]byte, error) {
		piece, err := produce()
		if err == nil {
			err = ctx.Err()
		}
		return piece, err
	})
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = errNoRoom
	}
	return piece, leave, err
}

// writeJSON answers with JSON.
func writeJSON(w http.ResponseWriter, status int, text []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err := w.Write(text)
	return err
}

// decodedSize is about how many bytes what is made of a JSON text takes, beside the text:
// each value a header, its number or text, and its part of what holds it, twice over where
// it is checked and converted.
func decodedSize(text []byte) int64 {
	values := bytes.Count(text, []byte{','}) + bytes.Count(text, []byte{':'}) + bytes.Count(text, []byte{'['}) + bytes.Count(text, []byte{'{'})
	return 2*int64(len(text)) + 128*int64(values)
}
