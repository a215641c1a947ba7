// Package luastd has the modules that a script may require: for values, text, time,
// files, the network and logging, in Go.
//
// The package knows nothing of plans, calls or logs. All that a module can do
// it does through an [Env], which the program that runs the scripts fills in:
// an Env without [Grants] reads, writes and asks for nothing. A failure of the world, a
// refused permission included, reaches the script as nil and a message;
// misuse, like a wrong argument, raises.
//
// [Modules] lists the modules. Each stands in a file of its own: a table of
// its functions in sorted order, and below it the functions in the same order,
// each documented by its signature in Lua.
package luastd

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Module is one module as require gives it: a table of functions and values.
type Module struct {
	Name   string
	Funcs  []Func // sorted by name
	Values []Value
}

// Func is a function of a module.
type Func struct {
	Name string
	Fn   func(e *Env, L *lua.LState) int
}

// Value is a constant of a module.
type Value struct {
	Name  string
	Value lua.LValue
}

// Null is json.null, in every state. It stands for JSON's null where Lua's nil would leave a hole.
// It is compared and never changed.
var Null lua.LValue = &lua.LUserData{Value: nullValue{}, Metatable: lua.LNil}

type nullValue struct{}

// Env holds the permissions and the surroundings of the modules of one LState. It belongs to the
// goroutine of the state. Codec, Clock, Log, Effect and Context must be set.
type Env struct {
	// Codec carries values between JSON and Lua.
	Codec Codec

	// Grants are the permissions; the zero value grants nothing.
	Grants Grants

	// Clock tells the time and waits.
	Clock Clock

	// Log receives what log.info and others say.
	Log *slog.Logger

	// Effect is asked before a module writes, sleeps or talks to the network.
	// The effect is named as in "fs.write". Effect raises if a script must not have it.
	Effect func(L *lua.LState, what string)

	// Outside is called before a module looks at a file or says something to the log,
	// which Effect need not be asked about. Nil does nothing.
	Outside func(L *lua.LState)

	// Context ends when the script that runs must end. Waiting happens under
	// it. The caller calls cancel.
	Context func() (ctx context.Context, cancel context.CancelFunc)

	// Charge counts the work of a function, a unit for some 16 bytes, and
	// raises when the script has used up its time. Nil counts nothing.
	Charge func(L *lua.LState, units int)

	// MaxString bounds the strings that are made, in bytes; 0 is 16 MiB.
	MaxString int

	// MaxArray bounds the arrays that are made; 0 is a million elements.
	MaxArray int

	// HTTP, if it is set, answers the requests of scripts by the module
	// http, in its place: for tests. Nothing leaves the machine then, so no
	// permission is asked for, and redirects are answers like any other. An
	// error of it reaches the script as nil and the error's text.
	HTTP func(ctx context.Context, r HTTPRequest) (HTTPResponse, error)

	// AskModel puts a question to a model, and returns an answer that fits its schema. An error of it
	// reaches the script as nil and the error's text. Nil is for a program without models.
	AskModel func(ctx context.Context, q ModelQuestion) (answer any, err error)

	// CheckSchema returns an error for the schema of a question to a model that is no JSON Schema:
	// misuse, which raises. Nil takes all.
	CheckSchema func(schema any) error

	// DefaultModel is the name of the model that is asked where a script names none; empty if it has
	// no name.
	DefaultModel string

	patterns patternCache // of re
	answers  *lua.LTable  // the metatable of what http gives
}

// Codec carries values between JSON, as nil, bool, string, json.Number, []any
// and map[string]any, and Lua.
type Codec interface {
	// ToLua makes Lua's own copy. The value must not change afterwards.
	ToLua(v any) lua.LValue
	// FromLua gives the value of v, or an error that begins with the place in
	// it, where name is the whole value: "value.items[3]: …".
	FromLua(v lua.LValue, name string) (any, error)
	// MarkArray makes t an array even while it is empty.
	MarkArray(t *lua.LTable)
	// Fill readies t for raw access. A codec whose tables fill themselves when
	// a script first touches them does so here; another does nothing.
	Fill(t *lua.LTable)
}

// Clock tells the time and waits.
type Clock interface {
	// Now returns the present time.
	Now() time.Time
	// Sleep waits for d, or until ctx is done, whose error it returns then.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now is the present time.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep waits for d or until ctx is done.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Env) outside(L *lua.LState) {
	if e.Outside != nil {
		e.Outside(L)
	}
}

func (e *Env) charge(L *lua.LState, units int) {
	if e.Charge != nil {
		e.Charge(L, units)
	}
}

func (e *Env) maxString() int {
	if e.MaxString > 0 {
		return e.MaxString
	}
	return 16 << 20
}

func (e *Env) maxArray() int {
	if e.MaxArray > 0 {
		return e.MaxArray
	}
	return 1_000_000
}

// limit raises if a string that is about to be made is too long.
func (e *Env) limit(L *lua.LState, size int) { e.grow(L, size, size) }

// grow is limit for a string that is made piece by piece. It charges for the piece.
func (e *Env) grow(L *lua.LState, size, piece int) {
	if size > e.maxString() {
		L.RaiseError("a string would be longer than %d bytes", e.maxString())
	}
	e.charge(L, piece/16+1)
}

// limitArray raises if an array that is about to be made is too long.
func (e *Env) limitArray(L *lua.LState, n int) {
	if n > e.maxArray() {
		L.RaiseError("an array would be longer than %d elements", e.maxArray())
	}
}

// failed returns nil and a message to the script.
func failed(L *lua.LState, message string) int {
	L.Push(lua.LNil)
	L.Push(lua.LString(message))
	return 2
}

// stringArray makes an array of strings.
func (e *Env) stringArray(L *lua.LState, list []string) *lua.LTable {
	e.limitArray(L, len(list))
	e.charge(L, len(list)+1)
	t := L.CreateTable(len(list), 0)
	for i, s := range list {
		t.RawSetInt(i+1, lua.LString(s))
	}
	e.Codec.MarkArray(t)
	return t
}

// options reads the optional table of named options at argument n and raises
// for a name that is not known.
func (e *Env) options(L *lua.LState, n int, known ...string) *lua.LTable {
	t := L.OptTable(n, nil)
	if t == nil {
		return L.CreateTable(0, 0)
	}
	e.checkNames(L, n, t, "option", known)
	return t
}

// checkNames raises for a name in the table at argument n that is not known.
func (e *Env) checkNames(L *lua.LState, n int, t *lua.LTable, what string, known []string) {
	e.Codec.Fill(t)
	for key, _ := t.Next(lua.LNil); key != lua.LNil; key, _ = t.Next(key) {
		if name, ok := key.(lua.LString); !ok || !slices.Contains(known, string(name)) {
			L.ArgError(n, "unknown "+what+" "+key.String()+" (one of "+strings.Join(known, ", ")+")")
		}
	}
}
