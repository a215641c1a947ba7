package luastd

import (
	"fmt"
	"os"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// env: the variables of the environment that the program runs in. In Lua:
//
//	local env = require("env")
//	local key = assert(env.get("API_KEY"))
//	local region = assert(env.get("REGION", "eu"))
//
// Each name needs the permission env: --allow-env=API_KEY,REGION, or allow.env
// in obelus.lua. OBELUS_TOKEN is the server's own and granted to no script.
var envFuncs = []Func{
	{"get", envGet},
}

// checkEnv returns an error for a wrong entry of the permission env, which has no patterns.
func checkEnv(entry string) error {
	if (Grants{}).IsSecret(entry) {
		return fmt.Errorf("%s is the server's own token, which no script gets: hand it another variable", entry)
	}
	if entry == "" || strings.ContainsAny(entry, "*?=\x00") {
		return fmt.Errorf("%q is no variable's name: name each of them", entry)
	}
	return nil
}

// secretNames are the variables that hold secrets of Obelus itself. They are granted to no script,
// also not by a permission for everything.
var secretNames = []string{"OBELUS_TOKEN"}

// IsSecret reports whether a variable is one that no script sees, whatever Env grants. It compares
// without case, since names of variables have none on Windows.
func (g Grants) IsSecret(name string) bool {
	same := func(secret string) bool { return strings.EqualFold(secret, name) }
	return slices.ContainsFunc(secretNames, same) || slices.ContainsFunc(g.Secrets, same)
}

// workerVariables are the variables that a worker process needs: for the Go runtime, the linker and
// the system, time zones, and certificates.
var workerVariables = []string{
	"GOCOVERDIR", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOTRACEBACK", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT",
	"TZ", "ZONEINFO", "SSL_CERT_DIR", "SSL_CERT_FILE",
}

// proxyVariables tell http which proxy to use, and Go by the last one not to believe them
// in a program that a web server runs by CGI. They may hold a password.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "REQUEST_METHOD"}

// Environ returns the part of an environment, as "NAME=value", for a process that runs scripts
// under these grants: the variables that it needs and those that Env grants.
func (g Grants) Environ(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		needed := slices.Contains(workerVariables, name) || !g.Net.None() && slices.Contains(proxyVariables, name)
		return g.IsSecret(name) || !needed && !g.Env.Has(name)
	})
}

// maxEnvName bounds a variable's name, which messages repeat.
const maxEnvName = 1000

// env.get(name, [default]) → text | nil, err
//
// A variable that is not set gives the default; without one that is a failure.
// A name that is not granted fails even with a default: a forgotten permission
// must not pass for a variable that is not set.
func envGet(e *Env, L *lua.LState) int {
	name := L.CheckString(1)
	if len(name) > maxEnvName {
		L.ArgError(1, fmt.Sprintf("the name of a variable has at most %d bytes", maxEnvName))
	}
	if name == "" || strings.ContainsAny(name, "=\x00") {
		L.ArgError(1, fmt.Sprintf("%q can't be the name of a variable", name))
	}
	e.charge(L, 5)
	if e.Grants.IsSecret(name) {
		whose := "it is the server's own"
		if (Grants{Secrets: e.Grants.Secrets}).IsSecret(name) && !(Grants{}).IsSecret(name) {
			whose = "it has a key, a secret, a token or a header that obelus.lua names"
		}
		return failed(L, fmt.Sprintf("reading the variable %q is not allowed: %s", name, whose))
	}
	if !e.Grants.Env.Has(name) {
		return failed(L, e.Grants.refusal(fmt.Sprintf("reading the variable %q", name), func(g Grants) *missing {
			if g.Env.Has(name) {
				return nil
			}
			return &missing{kind: "env", entries: []string{name}}
		}))
	}
	if text, ok := os.LookupEnv(name); ok {
		e.limit(L, len(text))
		L.Push(lua.LString(text))
		return 1
	}
	if L.Get(2) == lua.LNil {
		return failed(L, fmt.Sprintf("the variable %q is not set", name))
	}
	L.Push(L.Get(2))
	return 1
}
