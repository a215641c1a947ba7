package host

import (
	"fmt"
	"slices"

	"obelus/engine/lazyregexp"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
)

// Role is what requests with a token may do. Each role includes those before it.
type Role int

// The roles.
const (
	NoRole    Role = iota
	MayRead        // read
	MayRun         // start, cancel, append and fork too
	MayDecide      // approve, reject, release and correct too
)

var roleNames = []string{"none", "read", "run", "decide"}

// String returns the name of the role in the settings.
func (r Role) String() string { return roleNames[r] }

// Token is a secret that requests bring to a server, under serve.tokens in obelus.lua. It is kept
// in an environment variable that no script may read.
type Token struct {
	Name string // recorded as the author of decisions
	Env  string // the environment variable that has the secret
	May  Role
}

// ServerTokenVariable is the environment variable with the token that has all roles and no name.
const ServerTokenVariable = "OBELUS_TOKEN"

var tokenName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// readTokens reads the tokens by their names.
func readTokens(s *Serving, v any) error {
	return readNamed(v, "serve.tokens", "tokens", func(name, place string, v any) error {
		switch {
		case !tokenName().MatchString(name):
			return &settingError{nil, fmt.Sprintf("%s: %q is no name for it: it has up to 64 letters, digits, _, - and ., and begins with a letter", place, name)}
		case name == "token" || name == "local":
			return &settingError{nil, fmt.Sprintf("%s: decisions without a named token are recorded as by %q: choose another name", place, name)}
		}
		given, err := readToken(name, place, v)
		if err == nil {
			for _, other := range s.Tokens {
				if other.Env == given.Env {
					err = &settingError{[]string{"env"}, fmt.Sprintf("%s.env: %s is the variable of the token %s too: give each its own", place, given.Env, other.Name)}
				}
			}
		}
		s.Tokens = append(s.Tokens, given)
		return err
	})
}

// narrowTokens reduces tokens to those that there were before, in the same variables, and to the
// roles that they had. It reports whether the settings have more.
func (s *Serving) narrowTokens(before []Token) (more bool) {
	var narrowed []Token
	for _, t := range s.Tokens {
		i := slices.IndexFunc(before, func(b Token) bool { return b.Name == t.Name && b.Env == t.Env })
		if i < 0 {
			more = true
			continue
		}
		if t.May > before[i].May {
			t.May, more = before[i].May, true
		}
		narrowed = append(narrowed, t)
	}
	s.Tokens = narrowed
	return more
}

func readToken(name, place string, v any) (t Token, err error) {
	t = Token{Name: name}
	fields := []string{"env", "may"}
	err = readTable(v, place, fields, func(field string) string { return "setting " + place + "." + field }, func(i int, v any) (err error) {
		if fields[i] == "env" {
			t.Env, err = readTokenVariable(v)
		} else {
			t.May, err = readRole(v)
		}
		return err
	})
	switch {
	case err != nil:
	case t.Env == "":
		err = &settingError{nil, place + ` needs the name of the environment variable that has it: env = "CI_TOKEN"`}
	case t.May == NoRole:
		err = &settingError{nil, place + ` needs a role: may = "read", "run" or "decide"`}
	}
	return t, err
}

// readTokenVariable reads the name of a token's variable. Its error does not repeat the text, which
// may be the token itself.
func readTokenVariable(v any) (string, error) {
	name, err := readSecretName(v)
	switch {
	case err != nil:
		return "", fmt.Errorf(`must be the name of the environment variable that has the token, such as "CI_TOKEN": a token does not belong into this file`)
	case name == ServerTokenVariable:
		return "", fmt.Errorf("must not be %s, the token that has all roles: name another variable", ServerTokenVariable)
	}
	return name, nil
}

func readRole(v any) (Role, error) {
	text, _ := v.(string)
	i := slices.Index(roleNames, text)
	if i < int(MayRead) {
		return NoRole, fmt.Errorf("%w%s", setting.WrongType(`"read", "run" or "decide"`, v), luaerr.DidYouMean(text, roleNames[MayRead:]))
	}
	return Role(i), nil
}
