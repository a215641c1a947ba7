package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"obelus/host"
)

// A session stands for a token in a browser, which can't bring one by itself: a cookie with the
// token's name and the time at which the session ends, signed by a key that is made of the token.
// So a restart of the server keeps sessions, and a token that has changed ends them.
const (
	sessionCookie = "obelus-session" // and the port, since browsers keep cookies by host alone
	sessionTime   = 12 * time.Hour
)

// cookieName returns the name of the cookie with a request's session.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return sessionCookie + "-" + port
	}
	return sessionCookie
}

// sessionOf returns the text of a session's cookie.
func sessionOf(name, token string, until time.Time) string {
	body := base64.RawURLEncoding.EncodeToString([]byte(name)) + "." + strconv.FormatInt(until.Unix(), 10)
	return body + "." + signatureOf(body, token)
}

func signatureOf(body, token string) string {
	key := hmac.New(sha256.New, []byte(token))
	key.Write([]byte("obelus session key"))
	signed := hmac.New(sha256.New, key.Sum(nil))
	signed.Write([]byte(body))
	return base64.RawURLEncoding.EncodeToString(signed.Sum(nil))
}

// endedSessions are sessions that people have ended before their time, by the signature of the
// cookie. A copy of the cookie counts no more, until the server is started again.
type endedSessions struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// end ends a session that would end at a time, and forgets those that have ended by themselves.
func (e *endedSessions) end(signature string, until, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.until, func(_ string, t time.Time) bool { return now.After(t) })
	if e.until == nil {
		e.until = map[string]time.Time{}
	}
	e.until[signature] = until
}

func (e *endedSessions) has(signature string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ended := e.until[signature]
	return ended
}

// endSession ends the session of a request, if it has one.
func (a *access) endSession(r *http.Request) {
	now := time.Now()
	cookie, err := r.Cookie(cookieName(r))
	if _, ok := a.identifySession(r, now); err == nil && ok {
		a.ended.end(cookie.Value[strings.LastIndexByte(cookie.Value, '.')+1:], now.Add(sessionTime), now)
	}
}

// isPage reports whether a request is for a page, and not for the API.
func (a *access) isPage(r *http.Request) bool { return a.pages[firstSegment(r.URL.Path)] }

func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if first == "{$}" {
		return ""
	}
	return first
}

// identifySession returns the author of a request by its session. It compares with every token, as
// [access.identify] does.
func (a *access) identifySession(r *http.Request, now time.Time) (found caller, ok bool) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return caller{}, false
	}
	body, signature := cookie.Value, ""
	if i := strings.LastIndexByte(body, '.'); i >= 0 {
		body, signature = body[:i], body[i+1:]
	}
	encoded, end, _ := strings.Cut(body, ".")
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	until, wrong := strconv.ParseInt(end, 10, 64)
	if err != nil || wrong != nil || now.After(time.Unix(until, 0)) || a.ended.has(signature) {
		return caller{}, false
	}
	try := func(token string, c caller) {
		if token != "" && c.name == string(name) && subtle.ConstantTimeCompare([]byte(signatureOf(body, token)), []byte(signature)) == 1 {
			found, ok = c, true
		}
	}
	for _, t := range a.tokens() {
		try(secretOf(t, a.secret), caller{t.Name, t.May})
	}
	try(a.token, caller{nameOfToken, host.MayDecide})
	return found, ok
}
