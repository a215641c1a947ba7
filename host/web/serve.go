package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"obelus/engine"
)

// Bounds of connections.
const (
	idleTimeout = 2 * time.Minute
	headerBytes = 64 << 10
	drainGrace  = 5 * time.Second // in addition to the setting drain
)

// clientTimeouts bound the time for which the server waits for clients.
type clientTimeouts struct {
	header time.Duration // for the headers of a request
	body   time.Duration // for its body
	write  time.Duration // until the client has taken a piece of the answer
	room   time.Duration // for room for the answer, while other clients have not taken theirs
}

var defaultClientTimeouts = clientTimeouts{header: 10 * time.Second, body: time.Minute, write: 30 * time.Second, room: 5 * time.Second}

// Serve answers requests on a listener until ctx is done, and then drains. It returns nil, or the
// error that ended it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: s.timeouts.header, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	drain := cmp.Or(s.config.Host.Generation().Settings().Drain, engine.DefaultDrain)
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(drain, 0)+drainGrace)
	defer cancel()
	drained := s.Drain(draining)
	if closed := server.Shutdown(draining); closed != nil {
		server.Close()
	}
	return errors.Join(err, drained)
}
