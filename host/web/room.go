package web

import (
	"bytes"
	"context"
	"net/http"

	"golang.org/x/sync/semaphore"

	"obelus/host"
)

// answerRoom bounds the bytes of answers that are being sent, for all clients together: an answer
// is in memory until its client has read it. Small pieces have room of their own, so that large
// ones do not delay them.
type answerRoom struct {
	total  int64 // bytes for large pieces, and again for small ones
	large  *semaphore.Weighted
	small  *semaphore.Weighted
	places chan struct{} // bounds how many pieces are produced at once
}

// forStreams returns a room that shares the large pieces of another one and has small ones of its
// own: streams are many, and other answers do not wait for them.
func (o *answerRoom) forStreams() *answerRoom {
	return &answerRoom{o.total, o.large, semaphore.NewWeighted(o.total), o.places}
}

// forViews returns the room for views of the page, which has places of its own.
func (o *answerRoom) forViews() *answerRoom {
	return &answerRoom{o.total, o.large, o.small, make(chan struct{}, readers)}
}

// smallPiece is the largest size of a small piece.
const smallPiece = 2 * portion

func newRoom(total int64) *answerRoom {
	return &answerRoom{total, semaphore.NewWeighted(total), semaphore.NewWeighted(total), make(chan struct{}, readers)}
}

// need returns the room that a piece takes. A piece that is larger than the room is sent when there
// is no other.
func (o *answerRoom) need(size int) reserved {
	bytes := min(int64(size), o.total)
	if size <= smallPiece {
		return reserved{room: o, small: bytes}
	}
	return reserved{room: o, large: bytes}
}

// reserved is room that one answer holds.
type reserved struct {
	room         *answerRoom
	small, large int64
}

// release gives it back.
func (h reserved) release() {
	h.room.small.Release(h.small)
	h.room.large.Release(h.large)
	if h.large > largeBody/4 { // there were several copies of it
		host.ReturnMemory()
	}
}

// covers reports whether it is enough for what another one holds.
func (h reserved) covers(other reserved) bool {
	return h.small >= other.small && h.large >= other.large
}

// tryAcquire takes it if it is free now.
func (h reserved) tryAcquire() bool {
	if !h.room.small.TryAcquire(h.small) {
		return false
	}
	if h.room.large.TryAcquire(h.large) {
		return true
	}
	h.room.small.Release(h.small)
	return false
}

// acquire takes it once it is free. It is of small pieces, or of large ones.
func (h reserved) acquire(ctx context.Context) error {
	if h.small > 0 {
		return h.room.small.Acquire(ctx, h.small)
	}
	return h.room.large.Acquire(ctx, h.large)
}

// reserve produces a piece of an answer and holds room for it until leave is called. What produce
// reads of the log with its context takes room as it is read. While there is no room, the piece is
// dropped and produced again later: produce may be called several times. A piece that is produced
// for another one takes room as a part of that.
func (o *answerRoom) reserve(ctx context.Context, produce func(context.Context) ([]byte, error)) (piece []byte, leave func(), err error) {
	if _, isPart := ctx.Value(intakeKey{}).(*intake); isPart {
		piece, err = produce(ctx)
		return piece, func() {}, err
	}
	taken := reserved{room: o}
	defer func() { taken.release() }()
	for {
		in := &intake{room: o, taken: taken.large}
		piece, err = o.inPlace(ctx, in, &taken, produce)
		need := o.need(len(piece))
		switch {
		case in.lacked > 0:
			need = reserved{room: o, large: min(2*in.lacked, o.total)}
		case err != nil:
			return nil, nil, err
		case taken.covers(need):
			taken = reserved{o, taken.small - need.small, taken.large - need.large}
			return piece, need.release, nil
		}
		taken.release()
		taken = reserved{room: o}
		if in.lacked == 0 && need.tryAcquire() {
			return piece, need.release, nil
		}
		piece = nil
		if err := need.acquire(ctx); err != nil {
			return nil, nil, err
		}
		taken = need
	}
}

// inPlace calls produce once there is a place, and adds to what is taken what its intake takes.
func (o *answerRoom) inPlace(ctx context.Context, in *intake, taken *reserved, produce func(context.Context) ([]byte, error)) ([]byte, error) {
	select {
	case o.places <- struct{}{}:
		defer func() { taken.large = in.taken; <-o.places }()
		return produce(context.WithValue(ctx, intakeKey{}, in))
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errNoRoom is the answer if no room becomes free in time.
var errNoRoom = &problem{status: http.StatusTooManyRequests, code: "full", message: "the answers that are being sent are too large together", retry: 5}

// respondText answers with JSON that is read from the log.
func (s *Server) respondText(w http.ResponseWriter, r *http.Request, produce func(context.Context) ([]byte, error)) error {
	text, leave, err := s.reserve(r.Context(), s.room, produce)
	if err != nil {
		return err
	}
	defer leave()
	return writeJSON(w, http.StatusOK, text)
}

// nextPiece produces the next piece of an answer, perhaps several times. sent is called once it was
// sent, and reports whether there is another.
type nextPiece func(ctx context.Context) (piece []byte, sent func() (more bool), err error)

// respondInPieces answers with JSON of which each piece is in memory only while it is sent.
func (s *Server) respondInPieces(w http.ResponseWriter, r *http.Request, next nextPiece) error {
	w.Header().Set("Content-Type", "application/json")
	more, err := s.sendNext(w, r, next)
	for more && err == nil {
		if err = s.recheck(r); err == nil {
			more, err = s.sendNext(w, r, next)
		}
	}
	return err
}

func (s *Server) sendNext(w http.ResponseWriter, r *http.Request, next nextPiece) (more bool, err error) {
	var sent func() bool
	piece, leave, err := s.reserve(r.Context(), s.room, func(ctx context.Context) (piece []byte, err error) {
		piece, sent, err = next(ctx)
		return piece, err
	})
	if err != nil {
		return false, err
	}
	defer leave()
	if _, err := w.Write(piece); err != nil {
		return false, err
	}
	return sent(), nil
}

// reserve is [answerRoom.reserve] for an answer that has not begun: it gives up after some time.
func (s *Server) reserve(ctx context.Context, from *answerRoom, produce func(context.Context) ([]byte, error)) ([]byte, func(), error) {
	within, cancel := context.WithTimeoutCause(ctx, s.timeouts.room, errNoRoom)
	defer cancel()
	piece, leave, err := from.reserve(within, func(within context.Context) ([]byte, error) {
		return produce(context.WithValue(ctx, intakeKey{}, within.Value(intakeKey{})))
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
