package luastd

import (
	"fmt"
	"os"
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
// in obelus.lua.
var envFuncs = []Func{
	{"get", envGet},
}

// checkEnv reports what is wrong with an entry of the permission env, which has no
// patterns.
func checkEnv(entry string) error {
	if entry == "" || strings.ContainsAny(entry, "*?=\x00") {
		return fmt.Errorf("%q is no variable's name: name each of them", entry)
	}
	return nil
}

// maxEnvName bounds a variable's name, which messages repeat.
const maxEnvName = 1000

// env.get(name, [default]) → text | nil, err
//
// A variable that is not set gives the default; without one that is a failure.
// A name that is not granted fails even with a default: a forgotten permission
// must not pass for a variable that nobody set.
func envGet(e *Env, L *lua.LState) int {
	name := L.CheckString(1)
	if len(name) > maxEnvName {
		L.ArgError(1, fmt.Sprintf("the name of a variable has at most %d bytes", maxEnvName))
	}
	if name == "" || strings.ContainsAny(name, "=\x00") {
		L.ArgError(1, fmt.Sprintf("%q can't be the name of a variable", name))
	}
	e.charge(L, 5)
	if !e.Grants.Env.Has(name) {
		return failed(L, fmt.Sprintf("reading the variable %q is not allowed: run with --allow-env=%s or set allow.env in obelus.lua", name, name))
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
