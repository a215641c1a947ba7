package web

import (
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
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	headerBytes   = 64 << 10
	drainGrace    = 5 * time.Second // beside what calls are given
)

// Serve answers requests that come to a listener until ctx is done, and then
// drains. It gives nil, or why it could not go on.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	patience := s.config.Host.Generation().Settings().Drain
	if patience == 0 {
		patience = engine.DefaultDrain
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(patience, 0)+drainGrace)
	defer cancel()
	drained := s.Drain(draining)
	if closed := server.Shutdown(draining); closed != nil {
		server.Close()
	}
	return errors.Join(err, drained)
}
