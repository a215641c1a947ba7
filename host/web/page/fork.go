package page

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"obelus/engine/journal"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

// forkView is the form that forks a context at a moment.
type forkView struct {
	Context string
	At      int64 // the seq that the fork shares
	Head    int64
	Name    string // of the fork
	Refused string
	Fork    equivalent
}

// forkForm shows the form for a fork at the seq that the address has, or at the newest.
func (p *Page) forkForm(r *http.Request) (*content, error) {
	name := r.PathValue("context")
	head, err := p.config.Log.Head(r.Context(), name)
	if err != nil {
		return nil, err
	}
	v := forkView{Context: name, At: head, Head: head, Name: r.FormValue("name")}
	if at, err := strconv.ParseInt(r.FormValue("at"), 10, 64); err == nil && at > 0 && at < head {
		v.At = at
	}
	if v.Name == "" {
		v.Name = p.read.freeName(r, name)
	}
	v.Fork = equivalent{"fork", commandWith([]string{"fork", "-c", name, "--at", number(v.At)}, v.Name), p.callerOf(r).curl(forkAct(name, v.Name, v.At))}
	return &content{Title: "Fork " + name, Section: "runs", Template: "fork", Data: v, Still: true}, nil
}

// forkAct is the request that forks a context at a seq, under a name or, if it is empty, a new one.
func forkAct(name, fork string, at int64) act {
	body := map[string]any{"at": at}
	if fork != "" {
		body["context"] = fork
	}
	return act{http.MethodPost, contextPath(name, "fork"), body}
}

// postFork forks a context, and shows the fork.
func (p *Page) postFork(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("context")
	at, err := strconv.ParseInt(r.PostForm.Get("at"), 10, 64)
	if err != nil {
		err = &fieldError{"at", "it must be the seq of a message"}
	}
	var made struct{ Context string }
	if err == nil {
		err = p.do(r, forkAct(name, strings.TrimSpace(r.PostForm.Get("name")), at), &made)
	}
	if err == nil {
		http.Redirect(w, r, mount.Prefix(r)+"/runs/"+url.PathEscape(made.Context), http.StatusSeeOther)
		return nil
	}
	c, wrong := p.forkForm(r)
	if wrong != nil {
		return p.Fail(w, r, err)
	}
	status, message := p.explain(r, err)
	v := c.Data.(forkView)
	v.Refused = message
	c.Data, c.Status = v, status
	return p.send(w, r, c)
}

// output answers with the output of a run alone: a text as it is, anything else as JSON.
func (p *Page) output(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("context")
	isText := false
	text, leave, err := p.config.Reserve(r.Context(), false, func(ctx context.Context) ([]byte, error) {
		outcome, err := p.read.Outcome(ctx, name)
		if err != nil || outcome.Status != journal.RunDone {
			if err == nil {
				err = errNoPage
			}
			return nil, err
		}
		if text, ok := outcome.Output.(string); ok {
			isText = true
			return []byte(text), nil
		}
		return append(store.EncodeJSON(outcome.Output), '\n'), nil
	})
	if err != nil {
		return p.Fail(w, r, err)
	}
	defer leave()
	kind, ending := "application/json", ".json"
	if isText {
		kind, ending = "text/plain; charset=utf-8", ".txt"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+ending+`"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_, err = w.Write(text)
	return err
}
