package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"obelus/host"
	"obelus/host/supervise"
	"obelus/host/trace"
	"obelus/store"
)

// Config configures a [Server].
type Config struct {
	Host *host.Host // the project; call its Watch to have changed scripts loaded

	// Log has the contexts. If an error of it has a method Temporary() bool that returns true, as
	// for a full disk, the operation is tried again later.
	Log store.Log

	// Token must come with each request, as "Authorization: Bearer TOKEN". Without one every client
	// that reaches the server may do everything.
	Token string

	// Secret returns the variable of the environment that has the secret of a hook; "" for none. A
	// hook whose requests are to be signed refuses them if there is none, also where Secret is nil.
	Secret func(variable string) string

	// Names are host names, without ports, by which the server may be asked for, in addition to the
	// address to which a request comes, and to localhost if that is a loopback address.
	Names []string

	// Each of these, if it is not above 0, is taken from the project's setting serve, and otherwise
	// the default of that name.
	Body    int64         // bytes of a request
	Bodies  int64         // bytes that bodies and the values made of them take together
	Answers int64         // bytes of large answers that are being sent, and again of small ones
	Runs    int           // runs at once
	Queue   int           // runs that wait for their turn
	Timeout time.Duration // of one run, after which it is cancelled

	// NoResume leaves alone the runs of a process that has died. By default they are resumed,
	// unless the project's setting says otherwise.
	NoResume bool

	// Logger receives a record of each request and run. Nil discards them.
	Logger *slog.Logger

	poll time.Duration // [supervise.Config].Poll
}

// Defaults of [Config].
const (
	DefaultBody    = 8 << 20
	DefaultBodies  = 512 << 20
	DefaultAnswers = 64 << 20
	DefaultRuns    = supervise.DefaultRuns
	DefaultQueue   = supervise.DefaultQueue
	DefaultTimeout = supervise.DefaultTimeout
)

// Server serves a project. It is an [http.Handler].
type Server struct {
	config     Config
	log        store.Log // the supervisor's
	logger     *slog.Logger
	handler    http.Handler
	supervisor *supervise.Supervisor
	bodies     atomic.Int64  // bytes of the bodies being worked on, and of the values made of them
	streams    atomic.Int64  // clients that follow a context
	reading    chan struct{} // places for answers that are read from the log
	room       *answerRoom   // for answers that are being sent
	streaming  *answerRoom   // the same for streams
	metrics    *metrics
	written    writing         // by models at this moment
	exporter   *trace.Exporter // of runs; nil for none
	timeouts   clientTimeouts
}

var _ http.Handler = (*Server)(nil)

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
		config: config, logger: config.Logger, timeouts: defaultClientTimeouts,
		reading: make(chan struct{}, readers), room: newRoom(config.Answers),
	}
	s.streaming = s.room.forStreams()
	s.metrics = newMetrics(s)
	s.exporter = s.newExporter(serve.OTLP)
	s.supervisor = supervise.New(supervise.Config{
		Host: config.Host, Log: config.Log, Runs: config.Runs, Queue: config.Queue, Timeout: config.Timeout,
		NoResume: config.NoResume, Poll: config.poll, Logger: config.Logger, Observe: s.metrics.call, Spent: s.metrics.spent, Watch: s.written.publish, Ended: s.ended,
		Skipped: s.metrics.skip,
	})
	s.log = s.supervisor.Log()
	s.handler = s.guard(s.routes())
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

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// route is one path of the server.
type route struct {
	pattern string
	handle  func(http.ResponseWriter, *http.Request) error
	query   string // the names of its parameters
}

// table lists the routes, by subject. [Doc] describes them.
func (s *Server) table() []route {
	return []route{
		{"GET /healthz", s.health, anyQuery},
		{"GET /metrics", s.metrics.serve, anyQuery},
		{"POST /v1/runs", s.postRun, ""},
		{"GET /v1/runs", lists{s}.listRuns, listFilter + " cursor limit"},
		{"GET /v1/runs/counts", lists{s}.countRuns, listFilter},
		{"GET /v1/approvals", lists{s}.getInbox, ""},
		{"DELETE /v1/runs/{context}", s.deleteRun, "by"},
		{"GET /v1/contexts", lists{s}.listContexts, "prefix limit"},
		{"GET /v1/contexts/{context}", s.getContext, ""},
		{"GET /v1/contexts/{context}/log", s.getLog, "kind path since after at"},
		{"GET /v1/contexts/{context}/calls", s.getCalls, "at status"},
		{"GET /v1/contexts/{context}/approvals", lists{s}.getApprovals, ""},
		{"GET /v1/contexts/{context}/get", s.getValue, "ref at instance"},
		{"GET /v1/contexts/{context}/why", s.getWhy, "ref at instance"},
		{"GET /v1/contexts/{context}/events", s.getEvents, "after"},
		{"POST /v1/hooks/{hook}", hookHandler(s), anyQuery},
		{"POST /v1/contexts/{context}/messages", s.postMessages, ""},
		{"POST /v1/contexts/{context}/approve", s.postRelease, ""},
		{"POST /v1/contexts/{context}/calls/{call}/approve", s.postApprove, ""},
		{"POST /v1/contexts/{context}/calls/{call}/reject", s.postReject, ""},
		{"POST /v1/contexts/{context}/resume", s.postResume, ""},
		{"POST /v1/contexts/{context}/fork", s.postFork, ""},
		{"GET /v1/scripts", s.getScripts, ""},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, route := range s.table() {
		mux.HandleFunc(route.pattern, s.answer(route.pattern, func(w http.ResponseWriter, r *http.Request) error {
			if err := checkQuery(r, route.query); err != nil {
				return err
			}
			return route.handle(w, r)
		}))
		method, path, _ := strings.Cut(route.pattern, " ")
		methods[path] = append(methods[path], method)
	}
	for path, allowed := range methods {
		if isCovered(path, methods) {
			continue
		}
		mux.HandleFunc(path, s.answer(path, func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			return &problem{status: http.StatusMethodNotAllowed, code: "method", message: r.Method + " is not for this path: it takes " + strings.Join(allowed, ", ")}
		}))
	}
	nothing := s.answer("/", func(_ http.ResponseWriter, r *http.Request) error {
		return &problem{status: http.StatusNotFound, code: "not-found", message: "there is nothing at " + r.URL.Path}
	})
	mux.HandleFunc("/", nothing)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if written := r.URL.EscapedPath(); path.Clean(written) != written { // the mux would answer in HTML
			nothing(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// isCovered reports whether another path, with a parameter, takes the requests of a path for which
// that has no route.
func isCovered(path string, methods map[string][]string) bool {
	parts := strings.Split(path, "/")
	for other := range methods {
		others := strings.Split(other, "/")
		matches := func(i int) bool { return others[i] == parts[i] || strings.HasPrefix(others[i], "{") }
		for i := 0; len(others) == len(parts) && other != path && matches(i); i++ {
			if i == len(parts)-1 {
				return true
			}
		}
	}
	return false
}

// answer returns a handler that turns the error of a function into an answer.
func (s *Server) answer(route string, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.(*response).route = route
		if err := handle(w, r); err != nil {
			s.fail(w.(*response), r, err)
		}
	}
}
