package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"obelus/store"
)

const (
	// gatherTime is the time for which changes are gathered before they are sent.
	gatherTime = 200 * time.Millisecond

	// restRatio is how many times as long as it takes to make a view a stream rests after it, so that
	// a stream takes a twentieth of a processor at most.
	restRatio = 20

	// settleTime is the time after which a list has all that the log has: the rows of contexts may be
	// a second behind ([store.ContextInfo]).
	settleTime = 2 * time.Second

	// keepAlive is the time after which a quiet stream sends a comment.
	keepAlive = 15 * time.Second
)

// stream is one browser that follows a view.
type stream struct {
	page  *Page
	w     http.ResponseWriter
	r     *http.Request
	make  func(*http.Request) (*content, error)
	mark  func(*http.Request) (string, error) // of the state that the view shows; nil for none
	known *rendered                           // the view as the browser has it; nil for unknown
	seen  int64                               // the position of the log up to which it has it
	ended time.Time                           // when the newest look ended
	busy  bool                                // a list may be behind
	took  time.Duration

	marked   string          // the mark of the newest look
	reloaded <-chan struct{} // closed when scripts are loaded after the newest look
}

// stream sends the changes of a view, from the position that the browser has seen.
func (p *Page) stream(w http.ResponseWriter, r *http.Request, make func(*http.Request) (*content, error), mark func(*http.Request) (string, error)) error {
	leave, err := p.config.Follow()
	if err != nil {
		return err
	}
	defer leave()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	go func() {
		select {
		case <-p.config.Ended:
			stop()
		case <-ctx.Done():
		}
	}()
	s := &stream{page: p, w: w, r: r.WithContext(ctx), make: make, mark: mark, busy: true}
	had := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("seen"))
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if err := s.look(had); err == errStill {
		return endStream(w)
	} else if err != nil {
		return err
	}
	for {
		changed, err := s.await(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil && changed {
			err = s.look("")
		} else if err == nil {
			err = s.write(": here\n\n")
		}
		if err == errStill {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// errStill is the error for a stream of a view that does not change by itself.
var errStill = errors.New("the view does not change by itself")

// wantsStream reports whether a request is that of a browser's EventSource.
func wantsStream(r *http.Request) bool { return r.Header.Get("Accept") == "text/event-stream" }

// endStream answers a browser's EventSource so that it does not come again.
func endStream(w http.ResponseWriter) error {
	w.Header().Del("Content-Type")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// look makes the view, and sends what has changed in it; all of it to a browser that has another
// state of it than its first look finds.
func (s *stream) look(had string) error {
	if err := s.page.config.Recheck(s.r); err != nil {
		return err
	}
	s.reloaded = s.page.config.Host.NextReload()
	newest, _, err := store.Newest(s.r.Context(), s.page.config.Log, store.JournalFilter{})
	if err != nil {
		return err
	}
	if s.mark != nil {
		before := s.marked
		if s.marked, err = s.mark(s.r); err != nil {
			return err
		}
		if s.known != nil && s.marked == before {
			s.seen, s.ended = newest.N, time.Now()
			return nil
		}
	}
	v, took, err := s.page.renderPieces(s.r, s.make, s.known != nil)
	if err != nil {
		return err
	}
	first := s.known == nil
	if first && had == v.digest() {
		s.known = v
	}
	changes, any := v.since(s.known)
	s.known, s.seen, s.ended = v, newest.N, time.Now()
	s.took = took
	if !any {
		if first {
			return s.write(fmt.Sprintf("id: %s\nevent: begun\ndata: {}\n\n", v.digest()))
		}
		return nil
	}
	return s.write(fmt.Sprintf("id: %s\nevent: change\ndata: %s\n\n", v.digest(), encode(changes)))
}

// renderPieces renders a view with the pieces of its frame, and returns how long that took. Once
// the answer has begun, it waits for room for as long as it takes.
func (p *Page) renderPieces(r *http.Request, make func(*http.Request) (*content, error), begun bool) (v *rendered, took time.Duration, err error) {
	_, leave, err := p.config.Reserve(r.Context(), begun, func(ctx context.Context) ([]byte, error) {
		start := time.Now()
		defer func() { took = time.Since(start) }()
		r := r.WithContext(ctx)
		c, err := make(r)
		if err != nil {
			return nil, err
		}
		if c.Still {
			return nil, errStill
		}
		if v, err = p.render(r, c); err != nil {
			return nil, err
		}
		f, err := p.frame(r, c)
		if err != nil {
			return nil, err
		}
		v.text = nil // the pieces are enough
		return nil, p.addFramePieces(r, v, f)
	})
	if err != nil {
		return nil, 0, err
	}
	leave()
	return v, took, nil
}

// addFramePieces adds the pieces of the frame to the view's pieces.
func (p *Page) addFramePieces(r *http.Request, v *rendered, f *frame) error {
	for _, badge := range []string{"badge", "broken"} {
		b, err := p.render(r, &content{Template: badge, Data: f})
		if err != nil {
			return err
		}
		maps.Copy(v.pieces, b.pieces)
	}
	return nil
}

// write sends a text, if the request would still be answered.
func (s *stream) write(text string) error {
	if err := s.page.config.Recheck(s.r); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// await waits until the log has grown and changes are gathered, until scripts are loaded, or until
// what may have been behind is to be read again. It reports false after a time without changes.
func (s *stream) await(ctx context.Context) (changed bool, err error) {
	limit := keepAlive
	if s.busy {
		limit = settleTime
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reloaded := s.reloaded
	go func() {
		select {
		case <-reloaded:
			cancel()
		case <-limited.Done():
		}
	}()
	newest, err := s.page.config.Log.Await(limited, s.seen)
	if limited.Err() != nil {
		select {
		case <-reloaded:
			return true, nil
		default:
		}
		changed, s.busy = s.busy, false
		return changed, nil
	}
	if err != nil {
		return false, err
	}
	s.busy = true
	if newest < s.seen { // another log is in the place of this one
		s.known = nil
	}
	select {
	case <-time.After(max(gatherTime, time.Until(s.ended.Add(restRatio*s.took)))):
	case <-ctx.Done():
	}
	return true, nil
}
