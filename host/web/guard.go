package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"obelus/host"
	"obelus/host/hook"
)

// openBody is the size that a body of a request may have that needs no token, as of a login.
const openBody = 16 << 10

// largeBody is the size of a body from which memory is given back to the system after its request.
const largeBody = 32 << 20

// freeBody is how much of a body, and of the values made of it, counts for nothing.
const freeBody = 64 << 10

// body is a request's body, bounded together with all others. Once it has been read, the read
// deadline is removed: if it passed later, the client would seem to have gone away.
type body struct {
	io.ReadCloser
	controller *http.ResponseController
	total      *atomic.Int64 // bytes that all bodies take, beyond freeBody of each
	limit      int64         // the bytes that they may take together
	read       int64
	held       atomic.Int64
}

var errCrowded = &problem{status: http.StatusTooManyRequests, code: "full", message: "the requests that are being worked on are too large together", retry: 1}

// Read reads while there is room.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if !b.hold(b.read) {
		return 0, errCrowded
	}
	if errors.Is(err, io.EOF) {
		_ = b.controller.SetReadDeadline(time.Time{})
	}
	return n, err
}

// hold takes room for a size in all, and reports whether there was room. A body that is larger than
// the limit passes if there is no other.
func (b *body) hold(size int64) bool {
	for more := size - freeBody - b.held.Load(); more > 0; {
		taken := b.total.Load()
		if taken+more > b.limit && taken > b.held.Load() {
			return false
		}
		if b.total.CompareAndSwap(taken, taken+more) {
			b.held.Add(more)
			break
		}
	}
	return true
}

// release gives the room back.
func (b *body) release() {
	b.total.Add(-b.held.Swap(0))
}

// response is an answer, with a timeout for each piece that the client takes.
type response struct {
	http.ResponseWriter
	controller *http.ResponseController
	timeout    time.Duration
	route      string
	status     int // 0 until the headers are written
}

// Unwrap serves [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader records the status.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a piece, with a deadline for the client to take it.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	// Without deadlines, as in tests, the client is no network.
	_ = w.controller.SetWriteDeadline(time.Now().Add(w.timeout))
	return w.ResponseWriter.Write(b)
}

// FlushError sends the data so far, or the headers if there is none.
func (w *response) FlushError() error {
	_ = w.controller.SetWriteDeadline(time.Now().Add(w.timeout))
	err := w.controller.Flush()
	if w.status == 0 && !errors.Is(err, http.ErrNotSupported) {
		w.status = http.StatusOK
	}
	return err
}

// guard passes on the requests that may be answered, within bounds, and logs each. refuses may
// answer one that may not, and reports whether it has.
func (s *Server) guard(next http.Handler, refuses func(http.ResponseWriter, *http.Request, error) bool) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		start := time.Now()
		w := &response{ResponseWriter: rw, controller: http.NewResponseController(rw), timeout: s.timeouts.write, route: "refused"}
		defer func() {
			panicked := recover()
			if panicked != nil && panicked != http.ErrAbortHandler {
				s.logger.Error("a request broke down", "path", r.URL.Path, "error", panicked, "stack", string(debug.Stack()))
				if w.status == 0 {
					s.fail(w, r, &problem{status: http.StatusInternalServerError, code: "internal", message: internalText})
				} else {
					panicked = http.ErrAbortHandler // part of the answer has been sent
				}
			}
			s.metrics.request(w.route, w.status, time.Since(start))
			s.logger.LogAttrs(context.Background(), slog.LevelInfo, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
				slog.Int("status", w.status), slog.Duration("took", time.Since(start)), slog.String("from", r.RemoteAddr))
			if panicked == http.ErrAbortHandler {
				panic(panicked)
			}
		}()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		author, err := s.checkRequest(r)
		if err != nil {
			if !refuses(w, r, err) {
				s.fail(w, r, err)
			}
			return
		}
		r = withCaller(r, author)
		if r.Body == nil { // a handler around the server has removed it
			r.Body = http.NoBody
		}
		if r.Body != http.NoBody {
			_ = w.controller.SetReadDeadline(time.Now().Add(s.timeouts.body))
			body := &body{ReadCloser: http.MaxBytesReader(w, r.Body, s.bodyLimit(r)), controller: w.controller, total: &s.bodies, limit: s.config.Bodies}
			defer func() {
				if body.held.Load() > largeBody {
					host.ReturnMemory()
				}
				body.release()
			}()
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

// bodyLimit returns the size that the body of a request may have.
func (s *Server) bodyLimit(r *http.Request) int64 {
	if s.access.open[r.URL.Path] {
		return min(s.config.Body, openBody)
	}
	return s.config.Body
}

// checkRequest returns the author of a request, or an error for one that must not be answered: by
// its Host, its Origin or its token. A hook needs no token.
func (s *Server) checkRequest(r *http.Request) (author caller, err error) {
	called, isHook := hookOf(s, r)
	if isHook && called.Verify != hook.None {
		return author, nil // its signature is asked for, and no page can make one
	}
	if !s.isOwnHost(r) {
		return author, &problem{status: http.StatusForbidden, code: "host", message: "this server is not asked for as " + quoted(r.Host) + ": name it by its address, or by a name that it was given"}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return author, &problem{status: http.StatusForbidden, code: "origin", message: "requests from pages of " + quoted(origin) + " are refused"}
		}
	}
	if isHook || s.access.open[r.URL.Path] || s.isAsset(r) {
		return author, nil
	}
	author, err = s.access.identify(r)
	if err != nil && (s.access.isPage(r) || r.Method == http.MethodGet) { // the API takes no forms from browsers
		if session, ok := s.access.identifySession(r, time.Now()); ok {
			author, err = session, nil
		}
	}
	if s.config.ReadOnly {
		author.may = min(author.may, host.MayRead)
	}
	return author, err
}

// recheck returns an error if the author of a request is another one by now, or none: what is sent
// in pieces ends then.
func (s *Server) recheck(r *http.Request) error {
	author, err := s.checkRequest(r)
	if err == nil && author != callerOf(r.Context()) {
		err = errToken
	}
	return err
}

// isAsset reports whether a request is for a style sheet or script of the pages.
func (s *Server) isAsset(r *http.Request) bool {
	return s.access.isPage(r) && strings.HasPrefix(r.URL.Path, "/assets/")
}

// isOwnHost reports whether a request asks for this server by a name of its own. Another site's
// page can make its own name point here, but can't change the name that the browser sends.
func (s *Server) isOwnHost(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if slices.ContainsFunc(s.config.Names, func(own string) bool { return strings.EqualFold(own, name) }) {
		return true
	}
	local := netip.IPv6Loopback() // if the local address is unknown
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if port, err := netip.ParseAddrPort(addr.String()); err == nil {
			local = port.Addr().Unmap()
		}
	}
	if name == "localhost" {
		return local.IsLoopback()
	}
	asked, err := netip.ParseAddr(name)
	return err == nil && (asked.Unmap() == local || asked.IsLoopback() && local.IsLoopback())
}
