package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
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
)

// muchMemory is what is given back to the system as soon as a request is over that took it.
const muchMemory = 32 << 20

// small is what of a body always passes, and what of it is made.
const small = 64 << 10

// body is that of a request. Once it has been read, the client is waited for no
// longer: a deadline that passed then would look as if it had gone away.
type body struct {
	io.ReadCloser
	controller *http.ResponseController
	all        *atomic.Int64 // bytes that all take, beyond the small beginning of each
	most       int64         // that they may take
	read       int64
	held       atomic.Int64
}

var errCrowded = &problem{status: http.StatusTooManyRequests, code: "full", message: "the requests that are being worked on are too large together", retry: 1}

// Read reads as far as there is room.
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

// hold takes room for so many bytes in all, if there is. One that has more than all may take
// passes if there is no other.
func (b *body) hold(size int64) bool {
	for more := size - small - b.held.Load(); more > 0; {
		taken := b.all.Load()
		if taken+more > b.most && taken > b.held.Load() {
			return false
		}
		if b.all.CompareAndSwap(taken, taken+more) {
			b.held.Add(more)
			break
		}
	}
	return true
}

// release gives the room back.
func (b *body) release() {
	b.all.Add(-b.held.Swap(0))
}

// response is an answer under way.
type response struct {
	http.ResponseWriter
	controller *http.ResponseController
	patience   time.Duration
	route      string
	status     int // 0 before the headers are written
}

// Unwrap lets an [http.ResponseController] through.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write gives the client so long to take the next piece, and no longer.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	// Where there is no deadline, as in tests, there is nothing to wait for.
	_ = w.controller.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.Write(b)
}

// FlushError sends what has been written, and the headers before anything has.
func (w *response) FlushError() error {
	_ = w.controller.SetWriteDeadline(time.Now().Add(w.patience))
	err := w.controller.Flush()
	if w.status == 0 && !errors.Is(err, http.ErrNotSupported) {
		w.status = http.StatusOK
	}
	return err
}

// guarded lets only good requests through, and tells of each.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		start := time.Now()
		w := &response{ResponseWriter: rw, controller: http.NewResponseController(rw), patience: s.patience.write, route: "refused"}
		defer func() {
			panicked := recover()
			if panicked != nil && panicked != http.ErrAbortHandler {
				s.logger.Error("a request broke down", "path", r.URL.Path, "error", panicked, "stack", string(debug.Stack()))
				if w.status == 0 {
					s.fail(w, r, &problem{status: http.StatusInternalServerError, code: "internal", message: internalText})
				} else {
					panicked = http.ErrAbortHandler // the answer has begun
				}
			}
			s.metrics.request(w.route, w.status, time.Since(start))
			s.logger.Info("request", "method", r.Method, "path", r.URL.Path, "status", w.status, "took", time.Since(start), "from", r.RemoteAddr)
			if panicked == http.ErrAbortHandler {
				panic(panicked)
			}
		}()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := s.admits(r); err != nil {
			s.fail(w, r, err)
			return
		}
		if r.Body == nil { // a handler around the server took it away
			r.Body = http.NoBody
		}
		if r.Body != http.NoBody {
			_ = w.controller.SetReadDeadline(time.Now().Add(s.patience.body))
			body := &body{ReadCloser: http.MaxBytesReader(w, r.Body, s.config.Body), controller: w.controller, all: &s.bodies, most: s.config.Bodies}
			defer func() {
				if body.held.Load() > muchMemory {
					host.ReturnMemory()
				}
				body.release()
			}()
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

// admits tells whether a request may be answered at all.
func (s *Server) admits(r *http.Request) error {
	if !s.knows(r) {
		return &problem{status: http.StatusForbidden, code: "host", message: "this server is not asked for as " + quoted(r.Host) + ": name it by its address, or by a name that it was given"}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return &problem{status: http.StatusForbidden, code: "origin", message: "requests from pages of " + quoted(origin) + " are refused"}
		}
	}
	if s.config.Token == "" || r.URL.Path == "/healthz" {
		return nil
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	want, got := sha256.Sum256([]byte(s.config.Token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	if subtle.ConstantTimeCompare(want[:], got[:]) == 1 && strings.EqualFold(scheme, "Bearer") {
		return nil
	}
	return &problem{status: http.StatusUnauthorized, code: "token", message: "a token is needed: Authorization: Bearer TOKEN"}
}

// knows tells whether a request asks for this server by a name of its own. A
// page of another site can make its own name point here, but not the name that
// the browser sends.
func (s *Server) knows(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if slices.ContainsFunc(s.config.Names, func(own string) bool { return strings.EqualFold(own, name) }) {
		return true
	}
	local := netip.IPv6Loopback() // where it is not known
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
