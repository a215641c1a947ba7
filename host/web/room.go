package web

import (
	"bytes"
	"context"
	"net/http"

	"golang.org/x/sync/semaphore"

	"obelus/host"
	"obelus/store"
)

// answerRoom bounds the bytes of answers that are being sent, for all clients together: an answer
// is in memory until its client has read it. Small pieces have room of their own, so that large
// ones do not delay them.
type answerRoom struct {
	total int64 // bytes for large pieces, and again for small ones
	large *semaphore.Weighted
	small *semaphore.Weighted
}

// forStreams returns a room that shares the large pieces of another one and has small ones of its
// own: streams are many, and other answers do not wait for them.
func (o *answerRoom) forStreams() *answerRoom {
	return &answerRoom{o.total, o.large, semaphore.NewWeighted(o.total)}
}

// smallPiece is the largest size of a small piece.
const smallPiece = 2 * portion

func newRoom(total int64) *answerRoom {
	return &answerRoom{total, semaphore.NewWeighted(total), semaphore.NewWeighted(total)}
}

// of returns the room for a piece, and the part of it that the piece takes. A piece that is larger
// than the room is sent when there is no other.
func (o *answerRoom) of(size int) (*semaphore.Weighted, int64) {
	if size <= smallPiece {
		return o.small, min(int64(size), o.total)
	}
	return o.large, min(int64(size), o.total)
}

// reserve produces a piece of an answer and holds room for it until leave is called. While there is
// no room, the piece is dropped and produced again later: produce may be called several times.
// places bounds how many pieces are produced at once.
func (o *answerRoom) reserve(ctx context.Context, places chan struct{}, produce func() ([]byte, error)) (piece []byte, leave func(), err error) {
	var reserved *semaphore.Weighted
	var taken int64
	drop := func() {
		if reserved != nil {
			reserved.Release(taken)
		}
		if taken > largeBody/4 { // there were several copies of it
			host.ReturnMemory()
		}
		reserved, taken = nil, 0
	}
	for {
		if piece, err = withPlace(ctx, places, produce); err != nil {
			drop()
			return nil, nil, err
		}
		from, need := o.of(len(piece))
		if reserved == from && need <= taken { // it still fits into the room that it has
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

// withPlace calls do once there is a place.
func withPlace(ctx context.Context, places chan struct{}, do func() ([]byte, error)) ([]byte, error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return do()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errNoRoom is the answer if no room becomes free in time.
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

// respondText answers with JSON that is read from the log.
func (s *Server) respondText(w http.ResponseWriter, r *http.Request, produce func() ([]byte, error)) error {
	text, leave, err := s.reserve(r.Context(), s.room, produce)
	if err != nil {
		return err
	}
	defer leave()
	return writeJSON(w, http.StatusOK, text)
}

// reserve is [answerRoom.reserve] for an answer that has not begun: it gives up after some time.
func (s *Server) reserve(ctx context.Context, from *answerRoom, produce func() ([]byte, error)) ([]byte, func(), error) {
	within, cancel := context.WithTimeoutCause(ctx, s.timeouts.room, errNoRoom)
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

// writeJSON answers with the text of JSON.
func writeJSON(w http.ResponseWriter, status int, text []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err := w.Write(text)
	return err
}

// decodedSize estimates the bytes that the decoded values of a JSON text take, beside the text: a
// header for each value, its number or text, and its part of its container, twice over because
// values are checked and converted.
func decodedSize(text []byte) int64 {
	values := bytes.Count(text, []byte{','}) + bytes.Count(text, []byte{':'}) + bytes.Count(text, []byte{'['}) + bytes.Count(text, []byte{'{'})
	return 2*int64(len(text)) + 128*int64(values)
}
