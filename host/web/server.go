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
	"obelus/store"
)

// Config is what a program that serves a project decides.
type Config struct {
	Host *host.Host // the scripts; who wants them loaded anew calls its Watch

	// Log has the contexts. An error of it whose Temporary() bool is true is one
	// that may pass, as a full disk: what it concerns is tried again.
	Log store.Log

	// Token is what requests must bring, as "Authorization: Bearer TOKEN".
	// Without one whoever reaches the server may do everything.
	Token string

	// Names are host names, without ports, by which the server may be asked
	// for beside the address that a request comes to, and beside localhost
	// where that is a loopback address.
	Names []string

	// Each of these is what the project's setting serve says if it is not above 0, and the
	// default of that name if that says nothing.
	Body    int64         // bytes of a request
	Bodies  int64         // bytes that bodies and what is made of them take together
	Answers int64         // bytes of the large answers that are being sent, and again of the small ones
	Runs    int           // that run at once
	Queue   int           // runs that wait for their turn
	Timeout time.Duration // of one run, after which it is cancelled

	// NoResume leaves alone what a process that died has left. The default
	// goes on with it, unless the project's setting says otherwise.
	NoResume bool

	// Logger is told of requests and runs; nil for nobody.
	Logger *slog.Logger

	lookAgain time.Duration // how often it looks at what was left; 0 for lookAgain
}

// Defaults of [Config].
const (
	DefaultBody    = 8 << 20
	DefaultBodies  = 512 << 20
	DefaultAnswers = 64 << 20
	DefaultRuns    = 64
	DefaultQueue   = 256
	DefaultTimeout = time.Hour
)

// Server serves a project. It is an [http.Handler].
type Server struct {
	config     Config
	log        *noticed // the supervisor's
	logger     *slog.Logger
	handler    http.Handler
	supervisor *supervisor
	bodies     atomic.Int64  // bytes of the bodies being worked on, and of the values made of them
	streams    atomic.Int64  // clients that follow a context
	reading    chan struct{} // places for answers that are read from the log
	room       *room         // for answers that are being sent
	streaming  *room         // the same for streams
	metrics    *metrics
	patience   patience
}

var _ http.Handler = (*Server)(nil)

// New returns a server, which begins to resume the runs that a crash left. The caller must call
// Drain before the log is closed.
func New(config Config) *Server {
	serve := config.Host.Generation().Settings().Serve
	config.Body = cmp.Or(max(config.Body, 0), int64(serve.Body), DefaultBody)
	config.Bodies = cmp.Or(max(config.Bodies, 0), int64(serve.Bodies), DefaultBodies)
	config.Answers = cmp.Or(max(config.Answers, 0), int64(serve.Answers), DefaultAnswers)
	config.Runs = cmp.Or(max(config.Runs, 0), serve.Runs, DefaultRuns)
	config.Queue = cmp.Or(max(config.Queue, 0), serve.Queue, DefaultQueue)
	config.Timeout = cmp.Or(max(config.Timeout, 0), serve.Timeout, DefaultTimeout)
	config.NoResume = config.NoResume || serve.NoResume
	config.lookAgain = cmp.Or(config.lookAgain, lookAgain)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		config: config, logger: config.Logger, patience: defaultPatience,
		reading: make(chan struct{}, readers), room: newRoom(config.Answers),
	}
	s.streaming = s.room.forStreams()
	gate := newGate(config.Runs, config.Queue)
	s.metrics = newMetrics(config.Host, gate, &s.streams)
	s.supervisor = newSupervisor(supervision{
		host: config.Host, log: config.Log, logger: config.Logger, gate: gate, observer: s.metrics,
		timeout: config.Timeout, noResume: config.NoResume, lookAgain: config.lookAgain,
	})
	s.log = s.supervisor.log
	s.handler = s.guarded(s.routes())
	s.supervisor.start()
	return s
}

// Drain ends the server: it takes no more runs, running calls may end within the time of the
// setting drain, and the next server resumes the rest. Streams end when all runs have ended. Drain
// gives up waiting when ctx is done. A program with an [http.Server] of its own drains first and
// then shuts that down, which waits for requests: requests for streams and for runs end by the
// drain alone.
func (s *Server) Drain(ctx context.Context) error { return s.supervisor.drain(ctx) }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// route is what the server does at a path.
type route struct {
	pattern string
	handle  func(http.ResponseWriter, *http.Request) error
	query   string // the parameters that it takes
}

// table lists the routes, sorted by what they are about. [Doc] tells of them.
func (s *Server) table() []route {
	return []route{
		{"GET /healthz", s.health, anyQuery},
		{"GET /metrics", s.metrics.serve, anyQuery},
		{"POST /v1/runs", s.postRun, ""},
		{"DELETE /v1/runs/{context}", s.deleteRun, "by"},
		{"GET /v1/contexts", s.listContexts, "prefix limit"},
		{"GET /v1/contexts/{context}", s.getContext, ""},
		{"GET /v1/contexts/{context}/log", s.getLog, "kind path since after at"},
		{"GET /v1/contexts/{context}/calls", s.getCalls, "at status"},
		{"GET /v1/contexts/{context}/approvals", s.getApprovals, ""},
		{"GET /v1/contexts/{context}/get", s.getValue, "ref at instance"},
		{"GET /v1/contexts/{context}/why", s.getWhy, "ref at instance"},
		{"GET /v1/contexts/{context}/events", s.getEvents, "after"},
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
		if written := r.URL.EscapedPath(); path.Clean(written) != written { // the mux would answer with a page
			nothing(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// answer makes a handler of a function that may fail.
func (s *Server) answer(route string, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.(*response).route = route
		if err := handle(w, r); err != nil {
			s.fail(w.(*response), r, err)
		}
	}
}
