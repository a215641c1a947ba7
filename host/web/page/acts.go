package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"obelus/host/web/internal/mount"
	"obelus/store"
)

// act is a request of the JSON API. A form sends one through the page, which also shows it as the
// curl line that would do the same.
type act struct {
	Method string
	Path   string // with its query
	Body   any    // nil for none
}

// Curl returns the command line that sends the request to a server.
func (a act) Curl(server string) string {
	line := "curl"
	if a.Method != http.MethodPost || a.Body == nil {
		line += " -X " + a.Method
	}
	if a.Body != nil {
		line += " -d " + shellWord(encode(a.Body))
	}
	return line + " " + shellWord(server+a.Path)
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
	case "release":
		return post(contextPath(name, "approve"), map[string]any{})
	case "append":
		return appendAct(name, form)
	}
	return act{}, errNoPage
}

// appendAct returns the request that appends a value at a path.
func appendAct(name string, form url.Values) (act, error) {
	path, err := store.ParsePath(store.Dagger + strings.TrimPrefix(strings.TrimSpace(form.Get("path")), store.Dagger))
	if err != nil {
		return act{}, &fieldError{"path", err.Error()}
	}
	text := strings.ReplaceAll(form.Get("value"), "\r\n", "\n")
	value, err := store.DecodeJSON([]byte(text))
	if err != nil && strings.ContainsAny(strings.TrimSpace(text)[:min(1, len(strings.TrimSpace(text)))], `{["`) {
		return act{}, &fieldError{"value", "it looks like JSON, and is none: " + err.Error()}
	}
	if err != nil { // not JSON: a text
		value = text
	}
	message := map[string]any{"type": "data", "kind": path.Kind(), "data": store.Wrap(path, value)}
	if instance := strings.TrimSpace(form.Get("instance")); instance != "" {
		message["_instance"] = instance
	}
	return act{http.MethodPost, contextPath(name, "messages"), message}, nil
}

// replayed is the API's answer to a replay.
type replayed struct {
	Calls       int
	Same        bool
	Differences []struct {
		Call, What         string
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
		return p.sendRefused(w, r, name, err)
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
	a, err := runAct(name, r.PathValue("act"), r.PostForm)
	if err == nil && r.PathValue("act") == "approve" {
		err = p.addCorrections(r, name, a.Body.(map[string]any))
	}
	if err == nil {
		err = p.do(r, a, nil)
	}
	if err != nil {
		return p.sendRefused(w, r, name, err)
	}
	p.rememberName(w, r)
	back := "/runs/" + url.PathEscape(name)
	if r.PostForm.Get("back") == "inbox" {
		back = "/inbox"
	}
	http.Redirect(w, r, mount.Prefix(r)+back, http.StatusSeeOther)
	return nil
}

// sendRefused answers with the run's page, or the inbox, and the error of a form.
func (p *Page) sendRefused(w http.ResponseWriter, r *http.Request, name string, err error) error {
	status, message := p.explain(r, err)
	if r.PostForm.Get("back") == "inbox" {
		return p.sendInbox(w, r, status, name, message)
	}
	c, viewErr := p.run(r)
	if viewErr != nil {
		return p.Fail(w, r, err)
	}
	v := c.Data.(*runView)
	v.Refused, v.Form, v.RefusedAct = message, r.PostForm, r.PathValue("act")
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
