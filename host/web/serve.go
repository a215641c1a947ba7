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
	drainGrace  = 5 * time.Second // beside what calls are given
)

// patience is how long clients are waited for.
type patience struct {
	header time.Duration // until they have sent the headers of a request
	body   time.Duration // and its body
	write  time.Duration // until they have taken a piece of the answer
	room   time.Duration // while others have not, and there is no room for the answer
}

var defaultPatience = patience{header: 10 * time.Second, body: time.Minute, write: 30 * time.Second, room: 5 * time.Second}

// Serve answers requests that come to a listener until ctx is done, and then
// drains. It gives nil, or why it could not go on.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: s.patience.header, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
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
