package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"obelus/engine"
	"obelus/host/ops"
	"obelus/host/supervise"
	"obelus/host/web/internal/api"
)

// Bounds of connections.
const (
	idleTimeout = 2 * time.Minute
	headerBytes = 64 << 10
	drainGrace  = 5 * time.Second // in addition to the setting drain
)

var defaultClientTimeouts = clientTimeouts{header: 10 * time.Second, body: time.Minute, write: 30 * time.Second, room: 5 * time.Second}

// New returns a server, which begins to resume the runs that a crash left. The caller must call
// Drain before the log is closed.
func New(config Config) *Server {
	serve := config.Host.Generation().Settings().Serve
	config.Body = cmp.Or(max(config.Body, 0), int64(serve.Body), DefaultBody)
	config.Bodies = cmp.Or(max(config.Bodies, 0), int64(serve.Bodies), DefaultBodies)
	config.Answers = cmp.Or(max(config.Answers, 0), int64(serve.Answers), DefaultAnswers)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Secret == nil {
		config.Secret = func(string) string { return "" }
	}
	s := &Server{
		config: config, access: newAccess(&config), logger: config.Logger, timeouts: defaultClientTimeouts,
		room:   newRoom(config.Answers),
		trials: semaphore.NewWeighted(int64(cmp.Or(max(config.Runs, 0), serve.Runs, DefaultRuns))),
	}
	s.operations = slices.Concat(operations(), config.extra)
	s.described = sync.OnceValue(func() []api.Operation { return described(s.operations) })
	s.streaming = s.room.forStreams()
	s.metrics = newMetrics(s)
	s.exporter = s.newExporter(serve.OTLP)
	s.supervisor = supervise.New(supervise.Config{
		Host: config.Host, Log: config.Log, Runs: config.Runs, Queue: config.Queue, Timeout: config.Timeout,
		NoResume: config.NoResume, Poll: config.poll, Rest: config.rest, Logger: config.Logger, Observe: s.metrics.call, Spent: s.metrics.spent, Watch: s.written.publish, Ended: s.ended,
		Skipped: s.metrics.skip,
	})
	s.log = countedLog{s.supervisor.Log()}
	s.runs = &ops.Runs{Project: ops.Project{Host: config.Host, Log: s.log}}
	s.waiting = &ops.Waiting{Log: s.log}
	var routes http.Handler
	pages := newPages(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		routes.ServeHTTP(&response{ResponseWriter: w, controller: http.NewResponseController(w), timeout: s.timeouts.write}, r)
	}))
	routes = s.routes(pages)
	s.handler = s.guard(routes, pages.refuses)
	return s
}

// Drain ends the server: it takes no more runs, running calls may end within the time of the
// setting drain, and the next server resumes the rest. Streams end when all runs have ended. Drain
// gives up waiting when ctx is done. A program with an [http.Server] of its own drains first and
// then shuts that down, which waits for requests: requests for streams and for runs end by the
// drain alone.
func (s *Server) Drain(ctx context.Context) error {
	err := s.supervisor.Shutdown(ctx)
	if s.exporter != nil {
		sending, cancel := context.WithTimeout(ctx, traceGrace)
		defer cancel()
		s.exporter.Close(sending)
	}
	return err
}

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
