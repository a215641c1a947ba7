// Package page shows a project's runs to people, in a browser: lists, a run's graph and its course,
// the state at any moment, where each value comes from, and forms for acts on them.
//
// Every view is a page of HTML that the server renders, and works by links and forms alone. It is
// also a stream: asked for as text/event-stream, the same address sends those pieces of the page
// that have changed, and a small script puts them in their places. The page reads the log itself,
// and acts through the JSON API, so that each form equals the curl line beside it.
//
// Package web mounts it; [obelus/host/web.Config] has a field for leaving it out.
package page

import (
	"context"
	"errors"
	"net/http"

	"obelus/engine/history"
	"obelus/host"
	"obelus/host/ops"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

// Config configures a [Page].
type Config struct {
	Title string // of the project, for people
	Host  *host.Host
	Log   store.Log

	// API answers requests of the JSON API, whose paths begin with /v1. The page sends it requests
	// with the context of the browser's, so that they have its author.
	API http.Handler

	// NewName returns a name for a run that no context has.
	NewName func() string

	// Author returns the author of a request, as far as the server knows it.
	Author func(*http.Request) Author

	// Explain turns an error into the status and the text of an answer.
	Explain func(*http.Request, error) (status int, message string)

	// Stuck returns the reason why the server can't go on with a context.
	Stuck func(context string) (reason string, ok bool)

	// Recheck returns an error for a request that would not be answered any more, as one whose token
	// is no longer valid.
	Recheck func(*http.Request) error

	// Follow takes a place for a stream, or returns an error if there are too many.
	Follow func() (leave func(), err error)

	// Runs reads the calls of contexts.
	Runs *ops.Runs

	// ShowPlan returns the plan that waits in a context, or in a delegate's there. Its error is a
	// [*journal.NoSuchCallError] where none does.
	ShowPlan func(ctx context.Context, name string) (*history.ShownPlan, error)

	// Waiting knows where decisions wait.
	Waiting *ops.Waiting

	// Reserve produces the text of a view, with a context for what is read of the log, and holds room
	// for it until leave is called. It may call produce several times, until there is room, and gives
	// up after some time unless the answer has begun.
	Reserve func(ctx context.Context, begun bool, produce func(context.Context) ([]byte, error)) (text []byte, leave func(), err error)

	// Ended is closed when the server ends.
	Ended <-chan struct{}
}

// Author is the person behind a request.
type Author struct {
	Name   string    // recorded with decisions
	Role   host.Role // of the token
	Signed bool      // the name is a token's
	Token  bool      // the server wanted a token
}

// Page serves the pages.
type Page struct {
	config Config
	read   reader
	assets map[string]asset

	figures *ops.Figures
}

// New returns the pages of a project.
func New(config Config) *Page {
	return &Page{
		config: config, read: reader{config.Runs, config.Stuck}, figures: &ops.Figures{Log: config.Log},
		assets: readAssets(),
	}
}

// Route is a path of the page.
type Route struct {
	Pattern string
	Role    host.Role // that its requests need; NoRole for none
	Handle  func(http.ResponseWriter, *http.Request) error
}

// Routes lists the paths of the pages.
func (p *Page) Routes() []Route {
	starts := starter{p}
	return []Route{
		{"GET /{$}", host.MayRead, p.home},
		{"GET /runs", host.MayRead, p.view(p.runs)},
		{"GET /runs/{context}", host.MayRead, p.view(p.run)},
		{"GET /runs/{context}/prompt", host.MayRead, slowView(p, p.prompt)},
		{"GET /runs/{context}/output", host.MayRead, p.output},
		{"GET /runs/{context}/fork", host.MayRun, p.view(p.forkForm)},
		{"GET /runs/{context}/rerun", host.MayDecide, p.view(p.rerun)},
		{"POST /runs/{context}/rerun", host.MayDecide, p.postRerun},
		{"POST /runs/{context}/replay", host.MayRun, p.postReplay},
		{"POST /runs/{context}/{act}", host.MayRun, p.postAct},
		{"GET /diff", host.MayRead, p.view(p.diff)},
		{"GET /inbox", host.MayRead, p.marked(p.inbox, p.inboxMark)},
		{"GET /plans", host.MayRead, p.view(starts.plans)},
		{"GET /plans/{file...}", host.MayRead, p.view(starts.start)},
		{"POST /plans/{file...}", host.MayRun, starts.postStart},
		{"GET /scripts", host.MayRead, p.view(p.scripts)},
		{"GET /source/{generation}/{path...}", host.MayRead, p.view(p.source)},
		{"GET /keys", host.MayRead, p.view(p.keys)},
		{"GET /assets/{name}", host.NoRole, p.asset},
	}
}

// content is a view: the data, and the template that shows them.
type content struct {
	Title    string
	Section  string // of the navigation
	Template string
	Data     any
	Still    bool // it does not change by itself, so that nothing is to be followed
	Status   int  // of the answer; 0 for 200
}

// frame is what surrounds each view.
type frame struct {
	content
	Body    any // the view as HTML
	Project string
	Held    int // decisions that wait for a person
	Broken  bool
	Author  Author
	Seen    string // the digest of the pieces
	Assets  map[string]asset
}

func (p *Page) home(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, mount.Prefix(r)+"/runs", http.StatusSeeOther)
	return nil
}

// view returns the handler of a page. A browser's EventSource gets it as a stream.
func (p *Page) view(make func(*http.Request) (*content, error)) func(http.ResponseWriter, *http.Request) error {
	return p.marked(make, nil)
}

// marked is view for one that need not be made again while its mark is the same.
func (p *Page) marked(make func(*http.Request) (*content, error), mark func(*http.Request) (string, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if wantsStream(r) {
			return p.stream(w, r, make, mark)
		}
		return p.answer(w, r, make)
	}
}

// slowView returns the handler of a page that is still, and shows what the API may take long to
// answer: that has a bound of its own, and takes no place of a view meanwhile.
func slowView(p *Page, make func(*http.Request) (*content, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if wantsStream(r) {
			return endStream(w)
		}
		c, err := make(r)
		if err != nil {
			return p.Fail(w, r, err)
		}
		return p.send(w, r, c)
	}
}

// send answers with a view that is made.
func (p *Page) send(w http.ResponseWriter, r *http.Request, c *content) error {
	return p.answer(w, r, func(*http.Request) (*content, error) { return c, nil })
}

// answer makes a view, and answers with it in its frame.
func (p *Page) answer(w http.ResponseWriter, r *http.Request, make func(*http.Request) (*content, error)) error {
	status := 0
	text, leave, err := p.config.Reserve(r.Context(), false, func(ctx context.Context) ([]byte, error) {
		r := r.WithContext(ctx)
		c, err := make(r)
		if err != nil {
			return nil, err
		}
		status = c.Status
		return p.renderWhole(r, c)
	})
	if err != nil {
		return p.Fail(w, r, err)
	}
	defer leave()
	return writePage(w, status, text)
}

// renderWhole renders a view in its frame.
func (p *Page) renderWhole(r *http.Request, c *content) ([]byte, error) {
	body, err := p.render(r, c)
	if err != nil {
		return nil, err
	}
	f, err := p.frame(r, c)
	if err == nil {
		err = p.addFramePieces(r, body, f)
	}
	if err != nil {
		return nil, err
	}
	f.Body, f.Seen = body.whole(), body.digest()
	text, err := execute(p.template(r), "frame", f)
	return unmarked(text), err
}

// frame returns the frame of a view.
func (p *Page) frame(r *http.Request, c *content) (*frame, error) {
	waiting, err := p.config.Waiting.Look(r.Context())
	if err != nil {
		return nil, err
	}
	return &frame{
		content: *c, Project: p.config.Title, Held: min(waiting.Number, mostBadge),
		Broken: p.config.Host.LastReload().Err != nil, Author: p.config.Author(r), Assets: p.assets,
	}, nil
}

// mostBadge bounds the number that the badge says.
const mostBadge = 999

// policy lets a page load the server's own style sheet and script, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types obelus"

func writePage(w http.ResponseWriter, status int, text []byte) error {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept, Cookie")
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_, err := w.Write(text)
	return err
}

// Fail answers with an error as a page.
func (p *Page) Fail(w http.ResponseWriter, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return err
	}
	status, message := p.explain(r, err)
	f := &frame{content: content{Title: http.StatusText(status), Status: status}, Author: p.config.Author(r)}
	return p.writeStill(w, r, f, "error", map[string]any{"Message": message, "Title": f.Title})
}

// writeStill writes a page with no pieces, and nothing of the log.
func (p *Page) writeStill(w http.ResponseWriter, r *http.Request, f *frame, template string, data any) error {
	t := p.template(r)
	body, err := execute(t, template, data)
	if err != nil {
		return err
	}
	f.Still, f.Body, f.Project, f.Assets = true, safe(body), p.config.Title, p.assets
	text, err := execute(t, "frame", f)
	if err != nil {
		return err
	}
	return writePage(w, f.Status, unmarked(text))
}

// WriteLogin writes the page that asks for a token; message is the error of the last one.
func (p *Page) WriteLogin(w http.ResponseWriter, r *http.Request, status int, message, next string) error {
	f := &frame{content: content{Title: "Log in", Status: status}}
	return p.writeStill(w, r, f, "login", map[string]any{"Message": message, "Next": next})
}

// errNoPage is the error for an address that leads nowhere.
var errNoPage = errors.New("there is nothing at this address")
