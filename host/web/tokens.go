package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"obelus/host"
)

// A caller is the author of a request, with its role.
type caller struct {
	name string // recorded as the author of decisions
	may  host.Role
}

// Names of callers without a named token.
const (
	nameOfToken = "token" // the token of [Config]
	nameOfLocal = "local" // without any token
)

type callerKey struct{}

// withCaller returns a request that [callerOf] knows the author of.
func withCaller(r *http.Request, c caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callerOf returns the author of the request of a context. It has no role where no token was asked
// for, as for a hook.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// access finds the author of a request.
type access struct {
	token  string // of [Config]
	secret func(variable string) string
	tokens func() []host.Token
	// Without tokens a server is open to all that reach it, unless it was started with one: a
	// change of obelus.lua must not open it.
	closed bool
	open   map[string]bool // paths that need no token
	pages  map[string]bool // first segments of the paths of pages
	ended  endedSessions
}

func newAccess(c *Config) *access {
	a := &access{token: c.Token, secret: c.Secret, tokens: func() []host.Token { return c.Host.Generation().Settings().Serve.Tokens }}
	a.closed = a.token != "" || len(a.tokens()) > 0
	return a
}

var errToken = &problem{status: http.StatusUnauthorized, code: "token", message: "a token is needed: Authorization: Bearer TOKEN"}

// identify returns the author of a request by its token. It compares digests, with every token, so
// that its time depends neither on the token that is given nor on which of them it is.
func (a *access) identify(r *http.Request) (caller, error) {
	tokens := a.tokens()
	if !a.closed && len(tokens) == 0 {
		return caller{nameOfLocal, host.MayDecide}, nil
	}
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(text)))
	var found caller
	try := func(secret string, c caller) {
		digest := sha256.Sum256([]byte(secret))
		if subtle.ConstantTimeCompare(digest[:], given[:]) == 1 && secret != "" {
			found = c
		}
	}
	for _, t := range tokens {
		try(secretOf(t, a.secret), caller{t.Name, t.May})
	}
	try(a.token, caller{nameOfToken, host.MayDecide})
	if found.may == host.NoRole || !strings.EqualFold(scheme, "Bearer") {
		return caller{}, errToken
	}
	return found, nil
}

// secretOf returns the text of a token, "" for none. One from a file may end with a newline, which
// no header can contain.
func secretOf(t host.Token, secret func(variable string) string) string {
	return strings.TrimSpace(secret(t.Env))
}

// CheckTokens returns an error for tokens of the setting serve.tokens that no request can have, or
// whose name would be in doubt: the environment variable is empty, or has the same text as another
// one. The error names variables, and nothing of their values. token is [Config].Token.
func CheckTokens(tokens []host.Token, token string, secret func(variable string) string) error {
	owners := map[string]string{}
	if token != "" {
		owners[token] = "--token or " + host.ServerTokenVariable
	}
	for _, t := range tokens {
		text := secretOf(t, secret)
		if text == "" {
			return fmt.Errorf("serve.tokens.%s: the environment variable %s is not set, or empty: set it to the token, or remove this entry from obelus.lua", t.Name, t.Env)
		}
		if other := owners[text]; other != "" {
			return fmt.Errorf("serve.tokens.%s: the environment variable %s has the same token as %s: give each its own", t.Name, t.Env, other)
		}
		owners[text] = t.Env
	}
	return nil
}

// allow returns an error for a request whose author lacks a role.
func allow(ctx context.Context, role host.Role, what string) error {
	c := callerOf(ctx)
	if c.may >= role {
		return nil
	}
	return &problem{
		status: http.StatusForbidden, code: "role",
		message: fmt.Sprintf("%s needs a token with may = %q, and %s has %q", what, role.String(), c.name, c.may.String()),
	}
}
