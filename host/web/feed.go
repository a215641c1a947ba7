package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

const (
	// gatherTime is the time for which changes of contexts are gathered before they are sent.
	gatherTime = 200 * time.Millisecond

	// settleTime is the time after which a context's row has all that its journal has: the row may
	// be a second behind ([store.ContextInfo]).
	settleTime = 2 * time.Second
)

// feed is one client that follows all contexts.
type feed struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	inbox  bool  // it gets only the number of decisions that wait for a person
	seen   int64 // the journal's position up to which changes have been sent
	known  feedState
	busy   bool // rows of contexts may be behind
	begun  bool // whether the headers have been sent
}

// feedState holds the data that a client of a feed has been sent.
type feedState struct {
	since    time.Time         // when the context was appended to that changed last
	contexts map[string]string // those that were appended to shortly before that, as they were sent
	waiting  int               // the number of decisions; -1 for none yet
}

// feedIn follows all contexts.
type feedIn struct {
	After int64 `query:"after" kind:"count" jsonschema:"The id of an event after which to begin, or 0 for all contexts; without it the stream begins now."`
	Inbox bool  `query:"inbox" kind:"flag" jsonschema:"Follow only the number of decisions that wait for a person."`
}

// getFeed streams the changes of all contexts.
func (s *Server) getFeed(w http.ResponseWriter, r *http.Request, in feedIn) error {
	after, given, err := lastEvent(r, in.After)
	if err != nil {
		return err
	}
	defer s.streams.Add(-1)
	if s.streams.Add(1) > mostStreams {
		return errFollowed
	}
	f := &feed{server: s, w: w, r: r, inbox: in.Inbox, known: feedState{waiting: -1}}
	if err := f.findPosition(r.Context(), after, given); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return endStream(f.run(r.Context()))
}

// findPosition sets the position from which the client gets changes: the one that it gives, or now.
func (f *feed) findPosition(ctx context.Context, after int64, given bool) error {
	newest, _, err := store.Newest(ctx, f.server.log, store.JournalFilter{})
	if err != nil {
		return err
	}
	f.seen, f.known.since = newest.N, newest.Date
	if given && after <= newest.N { // else it is an id of another log, from before a copy was restored
		f.known.since, f.busy = time.Time{}, true
		if after > 0 {
			newest, _, err = store.Newest(ctx, f.server.log, store.JournalFilter{At: after})
			f.known.since = newest.Date
		}
		return err
	}
	if !f.inbox {
		_, f.known, err = f.changes(ctx)
	}
	return err
}

// run sends changes until the server has drained.
func (f *feed) run(request context.Context) error {
	ctx, stop := context.WithCancel(request)
	defer stop()
	go func() {
		select {
		case <-f.server.supervisor.Done():
			stop()
		case <-ctx.Done():
		}
	}()
	preface := ": changes of all contexts\n\n"
	for {
		reloaded := f.server.config.Host.NextReload() // perhaps without the token of the request
		if err := f.send(request, preface); err != nil {
			return err
		}
		if ctx.Err() != nil { // these were the last
			return nil
		}
		changed, err := f.await(ctx, reloaded)
		if err != nil && ctx.Err() == nil {
			return err
		}
		preface = ""
		if !changed {
			preface = ": here\n\n"
		}
		if request.Err() != nil {
			return nil
		}
	}
}

// await waits until the journal has grown, and then until more changes are gathered, or until rows
// that may have been behind are to be read again. It reports false after a time without changes.
func (f *feed) await(ctx context.Context, reloaded <-chan struct{}) (changed bool, err error) {
	limit := keepAlive
	if f.busy {
		limit = settleTime
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	go func() {
		select {
		case <-reloaded:
			cancel()
		case <-limited.Done():
		}
	}()
	newest, err := f.server.log.Await(limited, f.seen)
	if limited.Err() != nil {
		changed, f.busy = f.busy, false
		return changed, nil
	}
	if err != nil || newest <= f.seen {
		return true, err
	}
	f.busy = true
	select {
	case <-time.After(gatherTime):
	case <-ctx.Done():
	}
	return true, nil
}

// send sends the changes since the last time.
func (f *feed) send(ctx context.Context, preface string) error {
	var seen int64
	var known feedState
	read := func(context.Context) ([]byte, error) {
		newest, _, err := store.Newest(ctx, f.server.log, store.JournalFilter{})
		if err != nil {
			return nil, err
		}
		seen = newest.N
		text, kind := []byte(preface), "context"
		if f.inbox {
			kind = "inbox"
		}
		events, after, err := f.changes(ctx)
		known = after
		for i, data := range events {
			if i == len(events)-1 { // a client that gets only a part gets all of it again
				text = fmt.Appendf(text, "id: %d\n", seen)
			}
			text = fmt.Appendf(text, "event: %s\ndata: %s\n\n", kind, data)
		}
		return text, err
	}
	var piece []byte
	var leave func()
	var err error
	if f.begun { // no other answer is possible any more, so it waits without a limit
		piece, leave, err = f.server.streaming.reserve(ctx, read)
	} else {
		piece, leave, err = f.server.reserve(ctx, f.server.streaming, read)
	}
	if err != nil {
		return err
	}
	defer leave()
	f.seen, f.known = seen, known
	begun, err := f.server.sendPiece(f.w, f.r, piece, f.begun)
	f.begun = begun
	return err
}

// changes returns the data of the events that the client lacks, and its state once it has them.
func (f *feed) changes(ctx context.Context) (events []string, after feedState, err error) {
	if after = f.known; f.inbox {
		waiting, err := f.server.waiting.Look(ctx)
		if err != nil {
			return nil, after, err
		}
		if after.waiting = waiting.Number; after.waiting != f.known.waiting {
			events = append(events, string(store.EncodeJSON(inboxEvent{after.waiting})))
		}
		return events, after, nil
	}
	after.contexts = map[string]string{}
	for info, err := range f.server.log.Contexts(ctx, store.ContextFilter{Since: f.known.since.Add(-settleTime)}) {
		if err != nil {
			return nil, after, err
		}
		if info.Updated.After(after.since) {
			after.since = info.Updated
		}
		line, err := f.server.waiting.Summarize(ctx, info)
		if err != nil {
			return nil, after, err
		}
		if line.Status == journal.RunRunning { // it grows without an event
			line.Duration = 0
		}
		text := string(store.EncodeJSON(line))
		if after.contexts[info.Context] = text; f.known.contexts[info.Context] != text {
			events = append(events, text)
		}
	}
	slices.Reverse(events) // the one that was appended to last comes last
	return events, after, nil
}

// inboxEvent is the number of decisions that wait for a person.
type inboxEvent struct {
	Waiting int `json:"waiting"`
}
