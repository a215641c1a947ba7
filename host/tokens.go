package host

import (
	"slices"

	"obelus/engine/lazyregexp"
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
	Name string `kind:"token"` // recorded as the author of decisions
	Env  string `json:"env" kind:"variable" required:"the name of the environment variable that has it: env = \"CI_TOKEN\"" jsonschema:"the variable. No script may read it"`
	May  Role   `json:"may" kind:"role" required:"a role: may = \"read\", \"run\" or \"decide\"" jsonschema:"\"read\": ask for what is there; \"run\": start, cancel, append and fork too; \"decide\": approve, reject, release and correct too"`
}

// ServerTokenVariable is the environment variable with the token that has all roles and no name.
const ServerTokenVariable = "OBELUS_TOKEN"

var tokenName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

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
