package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"obelus/engine/visible"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

// act is a request of the JSON API, which a form sends through the page.
type act struct {
	Method string
	Path   string // with its query
	Body   any    // nil for none
}

// caller is how a program reaches the server that a browser has asked.
type caller struct {
	server string // its address, with the path that it is mounted at
	token  bool   // it wants a token
}

func (p *Page) callerOf(r *http.Request) caller {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return caller{scheme + "://" + r.Host + mount.Prefix(r), p.config.Author(r).Token}
}

// curl returns the command line that sends the request of an act.
func (c caller) curl(a act) string {
	line := "curl"
	if c.token {
		line += ` -H "Authorization: Bearer $OBELUS_TOKEN"`
	}
	if a.Method != http.MethodPost || a.Body == nil {
		line += " -X " + a.Method
	}
	if a.Body != nil {
		line += " -d " + visible.Word(encode(a.Body))
	}
	return line + " " + visible.Word(c.server+a.Path)
}

// equivalent is an act as a command, and as a request of the API.
type equivalent struct{ Title, Command, Curl string }

// equivalentOf returns what a form of a run's page does, given the words of the command.
func equivalentOf(c caller, context, what, call string, command ...string) equivalent {
	a, _ := runAct(context, what, url.Values{"call": {call}, "result": {`{"id":7}`}, "reason": {"…"}})
	return equivalent{strings.TrimSpace(what + " " + call), commandOf(append(command, "-c", context)...), c.curl(a)}
}

// equivalentsOf returns the acts that are offered for a run, as commands. One appends the message.
func equivalentsOf(v *runView, message map[string]any, c caller) (all []equivalent) {
	add := func(what, call string, command ...string) {
		all = append(all, equivalentOf(c, v.Context, what, call, command...))
	}
	for _, r := range v.Acts.Undecided[:min(len(v.Acts.Undecided), 1)] {
		add("retry", r.Call, "resume", "--retry", r.Call)
		add("skip", r.Call, "resume", "--skip", r.Call)
		add("result", r.Call, "resume", "--result", r.Call+`:={"id":7}`)
	}
	for _, r := range v.Acts.Held {
		add("approve", r.Call, "approve", r.Call)
		add("reject", r.Call, "reject", r.Call, "--reason", "…")
	}
	if v.Held != nil {
		all = append(all, v.Held.Approve, v.Held.Reject)
	}
	if v.Acts.Append {
		all = append(all, equivalent{"append", "echo " + visible.Word(encode(message)) + " | " + commandOf("append", "-c", v.Context), c.curl(act{http.MethodPost, contextPath(v.Context, "messages"), message})})
	}
	if v.Acts.Resume {
		add("resume", "", "resume")
	}
	if v.Acts.Replay {
		all = append(all, equivalent{"replay", commandOf("replay", "-c", v.Context), c.curl(act{http.MethodPost, contextPath(v.Context, "replay"), nil})})
	}
	if v.Acts.Cancel {
		add("cancel", "", "cancel")
	}
	return all
}

// refusedError is an act that the API has refused.
type refusedError struct {
	Status  int
	Message string
}

func (e *refusedError) Error() string { return e.Message }

// explain returns the status and the text of an answer to a request that has failed.
func (p *Page) explain(r *http.Request, err error) (status int, message string) {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return refused.Status, refused.Message
	}
	if wrong, ok := errors.AsType[*fieldError](err); ok {
		return http.StatusUnprocessableEntity, wrong.Error()
	}
	if errors.Is(err, errNoPage) {
		return http.StatusNotFound, errNoPage.Error()
	}
	return p.config.Explain(r, err)
}

// answer holds an answer of the API in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// do sends an act to the API, as the author of a browser's request, and decodes the answer into a
// value, if there is one. Its error may be a [*refusedError].
func (p *Page) do(r *http.Request, a act, into any) error {
	body := io.Reader(http.NoBody)
	if a.Body != nil {
		body = bytes.NewReader(store.EncodeJSON(a.Body))
	}
	request, err := http.NewRequestWithContext(r.Context(), a.Method, a.Path, body)
	if err != nil {
		return err
	}
	request.Host, request.RemoteAddr = r.Host, r.RemoteAddr
	got := &answer{header: http.Header{}, status: http.StatusOK}
	p.config.API.ServeHTTP(got, request)
	if got.status >= http.StatusBadRequest {
		var refused struct {
			Error struct{ Message string }
		}
		if err := json.Unmarshal(got.body.Bytes(), &refused); err != nil {
			refused.Error.Message = strings.TrimSpace(got.body.String())
		}
		return &refusedError{got.status, refused.Error.Message}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(got.body.Bytes(), into)
}

// otherSites finds forms that pages of other sites have sent.
var otherSites = http.NewCrossOriginProtection()

// CheckForm reads a form, and refuses one that a page of another site has sent. [Page.Fail] answers
// with its error.
func CheckForm(r *http.Request) error {
	if err := otherSites.Check(r); err != nil {
		return &refusedError{Status: http.StatusForbidden, Message: "forms of other sites' pages are refused"}
	}
	err := r.ParseForm()
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &refusedError{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the form has more than %d bytes", large.Limit)}
	}
	if err != nil {
		return &refusedError{Status: http.StatusBadRequest, Message: "the form can't be read: " + err.Error()}
	}
	return nil
}

func contextPath(name string, rest ...string) string {
	path := "/v1/contexts/" + url.PathEscape(name)
	for _, segment := range rest {
		path += "/" + url.PathEscape(segment)
	}
	return path
}

// runAct returns the request for a form of a run's page.
func runAct(name, what string, form url.Values) (act, error) {
	call, by := form.Get("call"), strings.TrimSpace(form.Get("by"))
	post := func(path string, body map[string]any) (act, error) {
		if by != "" {
			body["by"] = by
		}
		return act{http.MethodPost, path, body}, nil
	}
	switch what {
	case "cancel":
		query := ""
		if by != "" {
			query = "?by=" + url.QueryEscape(by)
		}
		return act{http.MethodDelete, "/v1/runs/" + url.PathEscape(name) + query, nil}, nil
	case "resume":
		return post(contextPath(name, "resume"), map[string]any{})
	case "retry", "skip":
		return post(contextPath(name, "resume"), map[string]any{what: []any{call}})
	case "result":
		value, err := store.DecodeJSON([]byte(form.Get("result")))
		if err != nil {
			return act{}, &fieldError{"result", "it must be JSON (a text in quotes, [ ] for a list): " + err.Error()}
		}
		return post(contextPath(name, "resume"), map[string]any{"result": map[string]any{call: value}})
	case "approve":
		return post(contextPath(name, "calls", call, "approve"), map[string]any{})
	case "reject":
		return post(contextPath(name, "calls", call, "reject"), map[string]any{"reason": form.Get("reason")})
	}
	return act{}, errNoPage
}

// replayed is the API's answer to a replay.
type replayed struct {
	Calls       int
	Same        bool
	Differences []struct {
		Context, Call      string
		Tick               int
		What               string
		Recorded, Replayed any
	}
}

// postReplay replays a run, which changes nothing, and shows whether it comes out the same.
func (p *Page) postReplay(w http.ResponseWriter, r *http.Request) error {
	if err := CheckForm(r); err != nil {
		return p.Fail(w, r, err)
	}
	name, answer := r.PathValue("context"), &replayed{}
	if err := p.do(r, act{http.MethodPost, contextPath(name, "replay"), nil}, answer); err != nil {
		return p.sendRefused(w, r, name, err, nil)
	}
	c, err := p.run(r)
	if err != nil {
		return p.Fail(w, r, err)
	}
	c.Data.(*runView).Replayed, c.Still = answer, true
	return p.send(w, r, c)
}

// postAct carries out a form of a run's page, and shows the run, or the page with an error.
func (p *Page) postAct(w http.ResponseWriter, r *http.Request) error {
	if err := CheckForm(r); err != nil {
		return p.Fail(w, r, err)
	}
	name := r.PathValue("context")
	if r.PathValue("act") == "fork" {
		return p.postFork(w, r)
	}
	a, err := p.actOf(r, name)
	var effects []string
	if err == nil && r.PathValue("act") == "approve-plan" {
		effects, err = p.previewPlan(r, a)
	}
	if err == nil && len(effects) == 0 {
		err = p.do(r, a, nil)
	}
	if err != nil || len(effects) > 0 {
		return p.sendRefused(w, r, name, err, effects)
	}
	p.rememberName(w, r)
	back := "/runs/" + url.PathEscape(name)
	if r.PostForm.Get("back") == "inbox" {
		back = "/inbox"
	}
	http.Redirect(w, r, mount.Prefix(r)+back, http.StatusSeeOther)
	return nil
}

// actOf returns the request for the form that was sent from a run's page.
func (p *Page) actOf(r *http.Request, name string) (act, error) {
	switch what := r.PathValue("act"); what {
	case "append":
		return p.appendAct(r, name)
	case "approve-plan", "reject-plan":
		return p.planAct(r.Context(), name, what, r.PostForm)
	case "approve":
		a, err := runAct(name, what, r.PostForm)
		if err == nil {
			err = p.addCorrections(r, name, a.Body.(map[string]any))
		}
		return a, err
	default:
		return runAct(name, what, r.PostForm)
	}
}

// sendRefused answers with the run's page, or the inbox, and the error of a form or, without one,
// what it would change, for the person to confirm.
func (p *Page) sendRefused(w http.ResponseWriter, r *http.Request, name string, err error, effects []string) error {
	status, message := http.StatusOK, ""
	if err != nil {
		status, message = p.explain(r, err)
	}
	if r.PostForm.Get("back") == "inbox" {
		return p.sendInbox(w, r, status, name, message, effects)
	}
	c, viewErr := p.run(r)
	if viewErr != nil {
		return p.Fail(w, r, cmp.Or(err, viewErr))
	}
	v := c.Data.(*runView)
	if v.Held != nil {
		v.Held.refill(r.PostForm, effects)
	}
	v.Refused, v.Form, v.RefusedAct = message, r.PostForm, r.PathValue("act")
	if len(r.PostForm["wait"]) > 0 {
		v.Inputs, v.Acts.Waits = nil, r.PostForm["wait"]
		if v.Inputs, viewErr = p.read.waitFields(r.Context(), name, v.Acts.Waits); viewErr != nil {
			return p.Fail(w, r, err)
		}
		refill(v.Inputs, r.PostForm, message)
	}
	c.Status, c.Still = status, true
	return p.send(w, r, c)
}

// nameCookie has the name that a person without a token of their own has given.
const nameCookie = "obelus-name"

func (p *Page) rememberName(w http.ResponseWriter, r *http.Request) {
	if by := strings.TrimSpace(r.PostForm.Get("by")); by != "" {
		http.SetCookie(w, &http.Cookie{
			Name: nameCookie, Value: url.QueryEscape(by), Path: mount.Prefix(r) + "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	}
}

// claimedName returns the name that a person has given before.
func claimedName(r *http.Request) string {
	c, err := r.Cookie(nameCookie)
	if err != nil {
		return ""
	}
	name, err := url.QueryUnescape(c.Value)
	if err != nil {
		return ""
	}
	return name
}
