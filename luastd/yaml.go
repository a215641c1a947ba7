package luastd

import (
	"context"

	lua "github.com/yuin/gopher-lua"

	"obelus/luastd/internal/yaml"
)

// yaml: the part of YAML that JSON has too. In Lua:
//
//	local yaml = require("yaml")
//	local config = assert(yaml.decode(text))
//	local text = yaml.encode({ name = "x", ports = { 80, 443 } })
//	-- name: x
//	-- ports:
//	--   - 80
//	--   - 443
//
// It reads one document of at most 1 MiB, nested at most 128 deep, by the rules of
// YAML 1.2.2, and refuses all others, with one exception: brackets that span lines
// may close in the column of the name that they belong to. Anchors, aliases and << work as
// long as the whole, written out, has no more than a million values and 64 MiB of text. What
// stands without quotes is read by the core schema of YAML 1.2: yes, no, 1_000 and timestamps
// are text, 010 is ten, 0o10 is eight. Whole numbers stay exact; those beyond ±2^53 reach a
// script as their digits. Names that are not text become it.
// Refused are infinities and NaN, names that are lists or mappings, names given twice, and
// tags other than !!str, !!int, !!float, !!bool, !!null, !!seq, !!map, !!timestamp and
// !!binary; the last two are text.
var yamlFuncs = []Func{
	{"decode", yamlDecode},
	{"encode", yamlEncode},
}

// yaml.decode(text) → value | nil, err; null alone is json.null
func yamlDecode(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	var v any
	var values int
	var err error
	e.aside(L, len(text)/4+1, func(context.Context) { v, values, err = yaml.Decode(text) })
	if err != nil {
		return failed(L, "not YAML that can be read: "+err.Error())
	}
	e.charge(L, values)
	if v == nil {
		L.Push(Null)
	} else {
		L.Push(e.Codec.ToLua(v))
	}
	return 1
}

// yaml.encode(value) → text, names sorted, each on a line of its own; text of
// several lines as a block where that keeps it. A value that JSON does not
// have raises.
func yamlEncode(e *Env, L *lua.LState) int {
	v, err := e.Codec.FromLua(L.Get(1), "value")
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	var text string
	e.aside(L, 4*weight(v), func(ctx context.Context) {
		text = yaml.Encode(v, func(size int) bool { return size > e.maxString() || ctx.Err() != nil })
	})
	e.limit(L, len(text))
	L.Push(lua.LString(text))
	return 1
}
