package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"obelus/host/web/internal/mount"
	"obelus/host/web/page"
)

// nextOf is the page to show after the login, as a query has it.
func nextOf(r *http.Request) string { return url.QueryEscape(r.URL.RequestURI()) }

// ownPath returns a path of this server, or "/" for one that leads elsewhere.
func ownPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.Contains(text, `\`) {
		return "/"
	}
	return text
}

func (p *pages) getLogin(w http.ResponseWriter, r *http.Request) error {
	return p.page.WriteLogin(w, r, http.StatusOK, "", ownPath(r.URL.Query().Get("next")))
}

// postLogin takes a token once, and gives a session for it.
func (p *pages) postLogin(w http.ResponseWriter, r *http.Request) error {
	if err := page.CheckForm(r); err != nil {
		return err
	}
	next, token := ownPath(r.PostForm.Get("next")), strings.TrimSpace(r.PostForm.Get("token"))
	asked := r.Clone(r.Context())
	asked.Header = http.Header{"Authorization": {"Bearer " + token}}
	author, err := p.access.identify(asked)
	if err != nil || token == "" {
		return p.page.WriteLogin(w, r, http.StatusUnauthorized, "No token of this server is that.", next)
	}
	http.SetCookie(w, p.cookie(r, sessionOf(author.name, token, time.Now().Add(sessionTime)), int(sessionTime.Seconds())))
	http.Redirect(w, r, mount.Prefix(r)+next, http.StatusSeeOther)
	return nil
}

// postLogout ends the browser's session.
func (p *pages) postLogout(w http.ResponseWriter, r *http.Request) error {
	if err := page.CheckForm(r); err != nil {
		return err
	}
	p.access.endSession(r)
	http.SetCookie(w, p.cookie(r, "", -1))
	http.Redirect(w, r, mount.Prefix(r)+"/login", http.StatusSeeOther)
	return nil
}

func (p *pages) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(r), Value: value, Path: mount.Prefix(r) + "/", MaxAge: age, HttpOnly: true, Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", SameSite: http.SameSiteStrictMode,
	}
}
