package luastd

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/google/uuid"
	lua "github.com/yuin/gopher-lua"
)

// random: unpredictable numbers and bytes, from the system's own
// source, fit for tokens and keys. In Lua:
//
//	local random = require("random")
//	local die = random.int(1, 6)
//	local token = require("base64").encode(random.bytes(32), { url = true })
var randomFuncs = []Func{
	{"bytes", randomBytes},
	{"float", randomFloat},
	{"int", randomInt},
}

// unforeseen makes numbers of the system's randomness.
var unforeseen = rand.New(systemRandom{})

type systemRandom struct{}

func (systemRandom) Uint64() uint64 {
	var b [8]byte
	cryptorand.Read(b[:]) // never fails: where it can't, the program ends
	return binary.NativeEndian.Uint64(b[:])
}

// random.bytes(n) → n bytes
func randomBytes(e *Env, L *lua.LState) int {
	n := wholeArg(L, 1)
	if n < 0 {
		L.ArgError(1, "must not be negative")
	}
	e.limit(L, int(n))
	b := make([]byte, n)
	cryptorand.Read(b)
	L.Push(lua.LString(b))
	return 1
}

// random.float() → a number from 0, below 1
func randomFloat(e *Env, L *lua.LState) int {
	e.charge(L, 5)
	L.Push(lua.LNumber(unforeseen.Float64()))
	return 1
}

// random.int(min, max) → a whole number from min to max, both included, each
// as likely as any other; up to ±2^53
func randomInt(e *Env, L *lua.LState) int {
	low, high := wholeArg(L, 1), wholeArg(L, 2)
	if low > high {
		L.ArgError(2, "must not be below the first")
	}
	e.charge(L, 5)
	L.Push(lua.LNumber(low + unforeseen.Int64N(high-low+1)))
	return 1
}

// wholeArg is argument n, a whole number that a Lua number holds exactly.
func wholeArg(L *lua.LState, n int) int64 {
	f := float64(L.CheckNumber(n))
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		L.ArgError(n, "must be a whole number, up to 2^53")
	}
	return int64(f)
}

// uuid: identifiers that are unique everywhere, as in RFC 9562. In Lua:
//
//	local uuid = require("uuid")
//	local id = uuid.v7()
var uuidFuncs = []Func{
	{"v4", func(e *Env, L *lua.LState) int { return newUUID(e, L, uuid.NewRandom) }},
	{"v7", func(e *Env, L *lua.LState) int { return newUUID(e, L, uuid.NewV7) }},
}

// uuid.v4() → text of 36 characters, all of it random
// uuid.v7() → likewise, beginning with the machine's time: later ones sort
// after earlier ones
func newUUID(e *Env, L *lua.LState, made func() (uuid.UUID, error)) int {
	e.charge(L, 10)
	L.Push(lua.LString(uuid.Must(made()).String()))
	return 1
}
