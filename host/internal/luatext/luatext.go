// Package luatext reads and writes Lua's numbers, and knows its names and keywords.
package luatext

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// IsWord reports whether a byte may be part of a name.
func IsWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// IsName reports whether a key may stand after a dot.
func IsName(key string) bool {
	if key == "" || key[0] >= '0' && key[0] <= '9' {
		return false
	}
	for i := range len(key) {
		if !IsWord(key[i]) {
			return false
		}
	}
	return true
}

// Keywords are the words of Lua that are no names.
var Keywords = []string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or", "repeat",
	"return", "then", "true", "until", "while",
}

// MaxExact is the largest integer up to which each integer is a float64.
const MaxExact = 1 << 53

// IsDigits reports whether text has only digits, or nothing.
func IsDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// FormatG formats a number as C's %.{precision}g does.
func FormatG(f float64, precision int, keepZeros bool) string {
	if precision == 0 {
		precision = 1
	}
	text := strconv.FormatFloat(f, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	x, _ := strconv.Atoi(exponent)
	trim := func(s string) string {
		if !keepZeros && strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if x < -4 || x >= precision {
		return trim(mantissa) + "e" + exponent
	}
	return trim(strconv.FormatFloat(f, 'f', precision-1-x, 64))
}

// maxNumeral is the longest text in bytes that is read as a number: reading one is slow and can't
// be interrupted.
const maxNumeral = 16 << 10

// ParseNumber reads a number as Lua's own reader does. Text that only Go takes for a number (1_000,
// 0b1, inf) is refused.
func ParseNumber(text string, base int) (lua.LNumber, bool) {
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

// FormatNumber writes a number as Lua 5.1 does, "%.14g", except for integers that a number holds
// exactly: an order number must not become 1.2e+15.
func FormatNumber(n lua.LNumber) string {
	f := float64(n)
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == math.Trunc(f) && math.Abs(f) <= MaxExact:
		return strconv.FormatInt(int64(f), 10)
	}
	return FormatG(f, 14, false)
}

// ToNumber returns a value as a number, if it is one or text that says one.
func ToNumber(v lua.LValue) (lua.LNumber, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return v, true
	case lua.LString:
		return ParseNumber(string(v), 10)
	}
	return 0, false
}

// FormatExact writes a number with as many digits as distinguish it from all others.
func FormatExact(n lua.LNumber) string {
	text := FormatNumber(n)
	for digits := 15; digits <= 17; digits++ {
		if back, err := strconv.ParseFloat(text, 64); err != nil || back == float64(n) {
			break
		}
		text = FormatG(float64(n), digits, false)
	}
	return text
}
