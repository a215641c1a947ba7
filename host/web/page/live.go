package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
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
	known *rendered // the view as the browser has it; nil for unknown
	seen  int64     // the position of the log up to which it has it
	busy  bool      // a list may be behind
	took  time.Duration

	reloaded <-chan struct{} // closed when scripts are loaded after the newest look
}

// stream sends the changes of a view, from the position that the browser has seen.
func (p *Page) stream(w http.ResponseWriter, r *http.Request, make func(*http.Request) (*content, error)) error {
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
	s := &stream{page: p, w: w, r: r.WithContext(ctx), make: make, busy: true}
	had, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if had == 0 {
		had, _ = strconv.ParseInt(r.URL.Query().Get("seen"), 10, 64)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if err := s.look(had); err != nil {
		return err
	}
	for {
		changed, err := s.await(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil && changed {
			err = s.look(s.seen)
		} else if err == nil {
			err = s.write(": here\n\n")
		}
		if err != nil {
			return err
		}
	}
}

// look makes the view, and sends what has changed in it since a position of the log, which is all
// of it if the browser saw another one.
func (s *stream) look(had int64) error {
	begun := time.Now()
	s.reloaded = s.page.config.Host.NextReload()
	newest, _, err := store.Newest(s.r.Context(), s.page.config.Log, store.JournalFilter{})
	if err != nil {
		return err
	}
	c, err := s.make(s.r)
	if err != nil {
		return err
	}
	v, err := s.page.render(s.r, c)
	if err != nil {
		return err
	}
	f, err := s.page.frame(s.r, c, newest.N)
	if err != nil {
		return err
	}
	for _, badge := range []string{"badge", "broken"} {
		b, err := s.page.render(s.r, &content{Template: badge, Data: f})
		if err != nil {
			return err
		}
		maps.Copy(v.pieces, b.pieces)
	}
	first := s.known == nil
	if first && had == newest.N { // the browser has the page of that position
		s.known = v
	}
	changes, any := v.since(s.known)
	s.known, s.seen, s.took = v, newest.N, time.Since(begun)
	if !any {
		if first {
			return s.write(fmt.Sprintf("id: %d\nevent: begun\ndata: {}\n\n", s.seen))
		}
		return nil
	}
	return s.write(fmt.Sprintf("id: %d\nevent: change\ndata: %s\n\n", s.seen, encode(changes)))
}

func (s *stream) write(text string) error {
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
	case <-time.After(max(gatherTime, restRatio*s.took)):
	case <-ctx.Done():
	}
	return true, nil
}
