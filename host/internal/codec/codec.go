// Package codec converts values between JSON, as package store has them, and Lua. Large values
// become tables that fill themselves when a script reads them, and a value that a script has not
// changed keeps its text. tolua.go and lazy.go lead into Lua, encode.go out of it.
package codec

import (
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
)

// Meter counts the work of converting values. Charge raises in L once there is too much of it;
// Spent reports that instead, for code that must not raise.
type Meter interface {
	Charge(L *lua.LState, units int)
	Spent(units int) bool
}

// Codec converts values between JSON, as package store has them, and Lua. It belongs to one state.
type Codec struct {
	state  *lua.LState
	thread func() *lua.LState // thread that runs now, in which a conversion raises
	meter  Meter
	limits *limits.Limits

	arrayMark *lua.LTable // metatable of tables that are arrays even if empty
	lazyMeta  *lua.LTable // model of the metatables of tables that are not filled yet
}

// New returns a codec for the state of L.
func New(L *lua.LState, thread func() *lua.LState, meter Meter, limits *limits.Limits) *Codec {
	c := &Codec{state: L, thread: thread, meter: meter, limits: limits, arrayMark: L.CreateTable(0, 0), lazyMeta: L.CreateTable(0, 2)}
	c.lazyMeta.RawSetString("__index", L.NewFunction(c.lazyIndex))
	c.lazyMeta.RawSetString("__newindex", L.NewFunction(c.lazyNewIndex))
	return c
}

// Library is the source of a table without a JSON value behind it.
type Library interface {
	FillTable(t *lua.LTable)
	LookupField(key lua.LValue) lua.LValue
}

// Opaque is a value behind userdata that is not JSON. NotJSON returns the error for it.
type Opaque interface{ NotJSON() string }

// Owns reports whether a metatable is the codec's own or one that [NewMark] made. Scripts do not
// see them.
func (c *Codec) Owns(meta *lua.LTable) bool {
	switch meta.Metatable.(type) {
	case *lazyValue, *kept, *mark:
		return true
	}
	return meta == c.arrayMark
}

// mark is the metatable of a metatable that is hidden from scripts.
type mark struct{}

func (*mark) String() string       { return "" }
func (*mark) Type() lua.LValueType { return lua.LTUserData }

// NewMark returns a metatable that scripts do not see, by which the host recognises tables.
func NewMark() *lua.LTable { return &lua.LTable{Metatable: &mark{}} }
