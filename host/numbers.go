package host

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func baseTonumber(s *state, L *lua.LState) int {
	v, base := L.CheckAny(1), optional(L, 2, 10)
	if n, ok := v.(lua.LNumber); ok && base == 10 {
		L.Push(n)
		return 1
	}
	if base < 2 || base > 36 {
		L.ArgError(2, "base out of range")
	}
	text, ok := v.(lua.LString)
	if n, isNumber := v.(lua.LNumber); isNumber { // its digits, in the base
		text, ok = lua.LString(numberText(n)), true
	}
	if !ok && base != 10 {
		L.TypeError(1, lua.LTString)
	}
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	if n, ok := parseNumber(string(text), base); ok {
		L.Push(n)
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

// maxNumeral is how long text may be that says a number: reading one is slow, and
// can't be stopped.
const maxNumeral = 16 << 10

// parseNumber reads a number as Lua's own reader does. What only Go takes
// for one (1_000, 0b1, inf) is none.
func parseNumber(text string, base int) (lua.LNumber, bool) {
	if len(text) > maxNumeral {
		return 0, false
	}
	text = strings.Trim(text, " \t\n\v\f\r")
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || strings.Contains(digits, "_") {
		return 0, false
	}
	hex := len(digits) > 2 && (strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X"))
	switch {
	case base != 10:
		if hex && base == 16 {
			digits = digits[2:]
		}
		n, err := strconv.ParseUint(digits, base, 64)
		if strings.HasPrefix(text, "-") {
			return -lua.LNumber(n), err == nil
		}
		return lua.LNumber(n), err == nil
	case hex && !strings.ContainsAny(digits, "pP"):
		text += "p0"
	case !hex && (digits == "" || strings.ContainsAny(digits, "xXnNpPiI")):
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return lua.LNumber(f), err == nil || math.IsInf(f, 0)
}

// numberText writes a number as Lua 5.1 does, "%.14g", but for integers that
// a number holds exactly: an order number must not come out as 1.2e+15.
func numberText(n lua.LNumber) string {
	f := float64(n)
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == math.Trunc(f) && math.Abs(f) <= maxExact:
		return strconv.FormatInt(int64(f), 10)
	}
	return formatG(f, 14, false)
}

// number is an argument that must be a number, or text that says one.
func number(L *lua.LState, arg int) lua.LNumber {
	n, ok := operand(L.Get(arg))
	if !ok {
		L.TypeError(arg, lua.LTNumber)
	}
	return n
}

func integer(L *lua.LState, arg int) int {
	if n, ok := L.Get(arg).(lua.LNumber); ok {
		return int(n)
	}
	return int(number(L, arg))
}

// optional is an integer that may be left out.
func optional(L *lua.LState, arg, otherwise int) int {
	if L.Get(arg) == lua.LNil {
		return otherwise
	}
	return integer(L, arg)
}
