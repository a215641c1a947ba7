package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// keepAlive is the time after which a stream without events sends a comment.
const keepAlive = 15 * time.Second

// mostStreams bounds how many clients follow contexts: each takes a connection and memory.
const mostStreams = 4096

var errFollowed = &problem{status: http.StatusTooManyRequests, code: "full", message: "too many clients follow contexts", retry: 15}

// stream is one client that follows a context.
type stream struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	news   <-chan struct{} // holds a token when there may be more
	pieces <-chan delta    // what models are writing
	name   string
	after  int64 // the position up to which the client has all events
	position
	preface string // sent before new events
	unsent  []byte
	begun   bool // whether the headers have been sent
}

// position says how far a stream has read.
type position struct {
	seen    int64     // the position of the last entry
	seq     int64     // the seq of the last message
	created time.Time // when the context was created: one that was pruned and made anew has other messages
}

// eventsIn follows a context.
type eventsIn struct {
	contextIn
	After int64 `query:"after" kind:"count" jsonschema:"The id of an event after which to begin."`
}

func (s *Server) getEvents(w http.ResponseWriter, r *http.Request, in eventsIn) error {
	after, _, err := lastEvent(r, in.After)
	if err != nil {
		return err
	}
	name := in.Context
	defer s.streams.Add(-1)
	if s.streams.Add(1) > mostStreams {
		return errFollowed
	}
	news, leave := s.supervisor.Subscribe(name)
	defer leave()
	pieces, stop := s.written.follow(name)
	defer stop()
	st := &stream{server: s, w: w, r: r, news: news, pieces: pieces, name: name, after: after}
	if err := st.findPosition(r.Context()); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return endStream(st.run(r.Context()))
}

// lastEvent returns the id of the last event that the client of a stream has, if it gives one: in a
// header, or as the parameter after. 0 is before all events.
func lastEvent(r *http.Request, after int64) (id int64, given bool, err error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		return after, r.URL.Query().Get("after") != "", nil
	}
	if id, err = strconv.ParseInt(text, 10, 64); err != nil || id < 0 {
		return 0, false, wrong("Last-Event-ID must be the id of an event, not %s", quoted(text))
	}
	return id, true, nil
}

// run sends the events so far, and then new ones, until the server has drained.
func (st *stream) run(ctx context.Context) error {
	ticker := time.NewTicker(keepAlive)
	defer ticker.Stop()
	st.preface = ": the events of context " + st.name + "\n\n"
	for {
		reloaded := st.server.config.Host.NextReload()
		if err := st.send(ctx); err != nil {
			return err
		}
		select {
		case <-st.news:
		case d := <-st.pieces:
			if err := st.sendWritten(d); err != nil {
				return err
			}
		case <-ticker.C:
			st.preface = ": here\n\n"
		case <-reloaded: // perhaps without the token of the request
			st.preface = ": here\n\n"
		case <-st.server.supervisor.Done():
			return st.send(ctx) // the last events of its run
		case <-ctx.Done():
			return nil
		}
	}
}

// send sends all new events.
func (st *stream) send(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = st.sendPortion(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sendPortion sends some of the new events. It holds none of them in memory while there is no room.
func (st *stream) sendPortion(ctx context.Context) (more bool, err error) {
	from := st.position
	read := func(context.Context) ([]byte, error) {
		st.position, st.unsent = from, []byte(st.preface)
		more, err = st.read(ctx)
		return st.unsent, err
	}
	var portion []byte
	var leave func()
	if st.begun { // no other answer is possible any more, so it waits without a limit
		portion, leave, err = st.server.streaming.reserve(ctx, read)
	} else {
		portion, leave, err = st.server.reserve(ctx, st.server.streaming, read)
	}
	if err != nil {
		return false, err
	}
	defer leave()
	st.preface, st.unsent = "", nil
	if st.begun {
		// Pieces that were published before these events were read are sent first, so that a client
		// has an answer's text before it hears that the call is done.
		if err := st.sendPieces(); err != nil {
			return false, err
		}
	}
	return more, st.flush(portion)
}

// findPosition sets the position at which the client's events begin.
func (st *stream) findPosition(ctx context.Context) (err error) {
	st.server.streaming.places <- struct{}{}
	defer func() { <-st.server.streaming.places }()
	info, err := st.server.log.Info(ctx, st.name)
	if st.created = info.Created; err != nil || st.after == 0 {
		return err
	}
	newest, _, err := store.Newest(ctx, st.server.log, store.JournalFilter{})
	if err != nil {
		return err
	}
	if newest.N < st.after { // an id of another log, which was there before a copy was restored
		st.after = 0
		return nil
	}
	entry, _, err := store.Newest(ctx, st.server.log, store.JournalFilter{Context: st.name, At: st.after})
	st.seen, st.seq = entry.N, entry.Seq
	return err
}

// portion is about how many bytes of events are sent at once. No read of the log is open meanwhile,
// since a client may be slow.
const portion = 64 << 10

// readers is how many answers are read from the log at once. Each takes a connection to it, or two,
// and several copies of a large value, and all subscribers of a context are notified at once.
const readers = 4

// read collects a portion of events: for each entry, the messages before it and then itself.
func (st *stream) read(ctx context.Context) (more bool, err error) {
	looked := false
	for entry, err := range st.server.log.Journal(ctx, store.JournalFilter{Context: st.name, After: st.seen}) {
		if err == nil && !looked {
			looked, err = true, st.checkContext(ctx)
		}
		if err != nil {
			return false, err
		}
		if entry.Seq > st.seq {
			if more, err := st.messages(ctx, entry); more || err != nil {
				return more, err
			}
		}
		st.seen, st.seq = entry.N, entry.Seq
		if err := st.entry(entry); err != nil {
			return false, err
		}
		if len(st.unsent) > portion {
			return true, nil
		}
	}
	return false, nil
}

// checkContext finds out whether the context is still the one that was read.
func (st *stream) checkContext(ctx context.Context) error {
	info, err := st.server.log.Info(ctx, st.name)
	if err == nil && !info.Created.Equal(st.created) {
		st.created, st.seq = info.Created, 0
	}
	return err
}

// messages adds the messages before an entry, which have the positions before its own. In a log of
// an older obelus they may have no positions.
func (st *stream) messages(ctx context.Context, entry store.Entry) (more bool, err error) {
	for m, err := range st.server.log.Messages(ctx, store.Filter{Context: st.name, After: st.seq, At: entry.Seq}) {
		if err != nil {
			return false, err
		}
		id := max(entry.N-1-(entry.Seq-m.Seq), st.seen)
		if id > st.after || id == st.seen {
			st.event("message", id, m)
		}
		if st.seq = m.Seq; len(st.unsent) > portion {
			return true, nil
		}
	}
	return false, nil
}

func (st *stream) entry(entry store.Entry) error {
	told, err := journal.ReadEntry(entry)
	if err != nil || told == nil || entry.N <= st.after {
		return err
	}
	kind := "call"
	if _, ok := told.(journal.RunChange); ok {
		kind = "run"
	}
	st.event(kind, entry.N, told)
	return nil
}

func (st *stream) event(kind string, id int64, data any) {
	st.unsent = fmt.Appendf(st.unsent, "id: %d\nevent: %s\ndata: %s\n\n", id, kind, store.EncodeJSON(data))
}

// flush sends a portion at once.
func (st *stream) flush(portion []byte) (err error) {
	st.begun, err = st.server.sendPiece(st.w, st.r, portion, st.begun)
	return err
}

// errEnded is the error of a stream whose request would not be answered any more.
var errEnded = errors.New("the request would not be answered any more")

// endStream returns the error of a stream, nil for errEnded.
func endStream(err error) error {
	if err == errEnded {
		return nil
	}
	return err
}

// sendPiece sends a piece of a stream at once, unless its request would not be answered any more.
// It reports whether the stream has begun.
func (s *Server) sendPiece(w http.ResponseWriter, r *http.Request, piece []byte, begun bool) (bool, error) {
	if len(piece) == 0 {
		return begun, nil
	}
	if err := s.recheck(r); begun && err != nil {
		return begun, errEnded
	} else if err != nil {
		return begun, err
	}
	controller := http.NewResponseController(w)
	if !begun { // another answer is still possible
		if err := controller.Flush(); errors.Is(err, http.ErrNotSupported) {
			return false, errUnflushable
		} else if err != nil {
			return false, err
		}
	}
	if _, err := w.Write(piece); err != nil {
		return true, err
	}
	return true, controller.Flush()
}
