package luastd

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// log: records in the program's own log. In Lua:
//
//	local log = require("log")
//	log.info("order received", { id = 17, lines = { "a", "b" } })
var logFuncs = []Func{
	{"debug", logAt(slog.LevelDebug)},
	{"error", logAt(slog.LevelError)},
	{"info", logAt(slog.LevelInfo)},
	{"warn", logAt(slog.LevelWarn)},
}

// log.debug|error|info|warn(message, [fields])
func logAt(level slog.Level) func(e *Env, L *lua.LState) int {
	return func(e *Env, L *lua.LState) int {
		message := L.CheckString(1)
		var attrs []slog.Attr
		units := 0
		if L.Get(2) != lua.LNil {
			v, err := e.Codec.FromLua(L.CheckTable(2), "fields")
			if err != nil {
				L.RaiseError("%s", err.Error())
			}
			fields, ok := v.(map[string]any)
			if !ok {
				L.ArgError(2, "fields have names")
			}
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				attrs = append(attrs, slog.Any(name, Logged(fields[name])))
			}
			units = weight(v)
		}
		e.outside(L)
		e.aside(L, 50+len(message)/16+units, func(context.Context) {
			e.Log.LogAttrs(context.Background(), level, message, attrs...)
		})
		return 0
	}
}

// Logged is a field as a log shows it: JSON, where it is more than text or a number.
func Logged(v any) any {
	switch v.(type) {
	case nil, map[string]any, []any:
		return inJSON{v}
	}
	return v
}

// Unlogged is what [Logged] was given.
func Unlogged(v any) any {
	if j, ok := v.(inJSON); ok {
		return j.v
	}
	return v
}

type inJSON struct{ v any }

// MarshalJSON is for logs in JSON.
func (j inJSON) MarshalJSON() ([]byte, error) { return encodeJSON(j.v, "") }

// MarshalText is for logs of text.
func (j inJSON) MarshalText() ([]byte, error) { return j.MarshalJSON() }

// String is for a program's own.
func (j inJSON) String() string {
	text, _ := j.MarshalJSON()
	return string(text)
}
