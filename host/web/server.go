package web

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"obelus/host"
	"obelus/host/ops"
	"obelus/host/supervise"
	"obelus/host/trace"
	"obelus/host/web/internal/api"
	"obelus/store"
)

// Config configures a [Server].
type Config struct {
	Host *host.Host // the project; call its Watch to have changed scripts loaded

	// Log has the contexts. If an error of it has a method Temporary() bool that returns true, as
	// for a full disk, the operation is tried again later.
	Log store.Log

	// Token lets requests do everything that bring it, as "Authorization: Bearer TOKEN"; the tokens of
	// the project's setting serve.tokens let them do what their roles say. Without any token every
	// client that reaches the server may do everything.
	Token string

	// Secret returns the variable of the environment that has the secret of a hook, or a token of the
	// setting serve.tokens; "" for none, also where Secret is nil. A hook whose requests are to be
	// signed refuses them without it, and such a token lets nobody in: see [CheckTokens].
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

	// Page serves pages for people too, at / : lists, runs, forms. See package page.
	Page  bool
	Title string // of the project, on pages

	// ReadOnly refuses all requests that would change something, those to hooks included. Runs that
	// the log has go on.
	ReadOnly bool

	// Logger receives a record of each request and run. Nil discards them.
	Logger *slog.Logger

	extra []operation // in addition to [operations]

	poll time.Duration // [supervise.Config].Poll
	rest time.Duration // [supervise.Config].Rest
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
	access     *access
	trials     *semaphore.Weighted // places for work that is no run
	operations []operation
	described  func() []api.Operation // the operations for clients
	supervisor *supervise.Supervisor
	bodies     atomic.Int64 // bytes of the bodies being worked on, and of the values made of them
	streams    atomic.Int64 // clients that follow a context
	room       *answerRoom  // for answers that are being sent
	streaming  *answerRoom  // the same for streams
	runs       *ops.Runs    // what the log has about them
	waiting    *ops.Waiting // for decisions
	metrics    *metrics
	written    writing         // by models at this moment
	exporter   *trace.Exporter // of runs; nil for none
	timeouts   clientTimeouts
}

var _ http.Handler = (*Server)(nil)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// clientTimeouts bound the time for which the server waits for clients.
type clientTimeouts struct {
	header time.Duration // for the headers of a request
	body   time.Duration // for its body
	write  time.Duration // until the client has taken a piece of the answer
	room   time.Duration // for room for the answer, while other clients have not taken theirs
}
