package sandbox

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luatext"
)

// directive is one %-5.2f of a format.
type directive struct {
	minus, plus, space, alt, zero bool
	width, precision              int // precision is -1 for none
	verb                          byte
}

func stringFormat(s *State, L *lua.LState) int {
	format := s.checkText(L, 1)
	var b strings.Builder
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		d, end := parseDirective(L, format, i)
		i = end
		if arg++; arg > L.GetTop() {
			L.ArgError(arg, "no value")
		}
		text := formatDirective(s, L, d, arg)
		b.WriteString(text)
		s.checkGrowth(L, b.Len(), len(text))
	}
	s.checkLength(L, b.Len())
	return Push(L, lua.LString(b.String()))
}

func parseDirective(L *lua.LState, format string, i int) (d directive, end int) {
	d.precision = -1
	flags := i
	for ; i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0; i++ {
		switch format[i] {
		case '-':
			d.minus = true
		case '+':
			d.plus = true
		case ' ':
			d.space = true
		case '#':
			d.alt = true
		case '0':
			d.zero = true
		}
	}
	if i-flags > 5 {
		L.RaiseError("invalid format (repeated flags)")
	}
	digits := func() int {
		from := i
		for i < len(format) && format[i] >= '0' && format[i] <= '9' {
			i++
		}
		if i-from > 2 {
			L.RaiseError("invalid format (width or precision too long)")
		}
		n, _ := strconv.Atoi(format[from:i])
		return n
	}
	d.width = digits()
	if i < len(format) && format[i] == '.' {
		i++
		d.precision = digits()
	}
	if i >= len(format) || strings.IndexByte("cdiouxXeEfgGqs", format[i]) < 0 {
		L.RaiseError("invalid option '%%%s' to 'format'", format[min(i, len(format)):min(i+1, len(format))])
	}
	d.verb = format[i]
	return d, i
}

func formatDirective(s *State, L *lua.LState, d directive, arg int) string {
	switch d.verb {
	case 'q':
		return quoteLua(s.checkText(L, arg))
	case 's':
		text := s.toText(L, L.Get(arg))
		if d.precision >= 0 && d.precision < len(text) {
			text = text[:d.precision]
		}
		return d.pad("", text, false)
	case 'c':
		return d.pad("", string([]byte{byte(integer(L, arg))}), false)
	}
	n := float64(number(L, arg))
	if strings.IndexByte("diouxX", d.verb) >= 0 {
		return d.integer(n)
	}
	return d.float(n)
}

// pad extends sign and digits to the width.
func (d directive) pad(sign, digits string, zeros bool) string {
	missing := d.width - len(sign) - len(digits)
	switch {
	case missing <= 0:
		return sign + digits
	case d.minus:
		return sign + digits + strings.Repeat(" ", missing)
	case zeros && d.zero:
		return sign + strings.Repeat("0", missing) + digits
	}
	return strings.Repeat(" ", missing) + sign + digits
}

func (d directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.plus:
		return "+"
	case d.space:
		return " "
	}
	return ""
}

func (d directive) integer(f float64) string {
	base, prefix := 10, ""
	switch d.verb {
	case 'o':
		base = 8
	case 'x', 'X':
		base = 16
		if d.alt && f != 0 {
			prefix = "0" + string(d.verb)
		}
	}
	var digits, sign string
	n := toInt64(f)
	if d.verb == 'd' || d.verb == 'i' {
		sign = d.sign(n < 0)
		digits = strings.TrimPrefix(strconv.FormatInt(n, 10), "-")
	} else {
		digits = strconv.FormatUint(toUint64(f), base)
	}
	if d.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if d.precision == 0 && n == 0 {
		digits = ""
	}
	if missing := d.precision - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if d.verb == 'o' && d.alt && !strings.HasPrefix(digits, "0") {
		digits = "0" + digits
	}
	return d.pad(sign+prefix, digits, d.precision < 0)
}

// toInt64 is C's conversion, with a defined result where C has none.
func toInt64(f float64) int64 {
	switch {
	case f != f:
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// toUint64 is C's conversion to an unsigned integer: a negative number keeps its bits.
func toUint64(f float64) uint64 {
	if f >= math.MaxInt64 && f < math.MaxUint64 {
		return uint64(f)
	}
	return uint64(toInt64(f))
}

func (d directive) float(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		text := strings.TrimPrefix(luatext.FormatNumber(lua.LNumber(f)), "-")
		if d.verb == 'E' || d.verb == 'G' {
			text = strings.ToUpper(text)
		}
		return d.pad(d.sign(math.IsInf(f, -1)), text, false)
	}
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	var digits string
	switch d.verb {
	case 'g', 'G':
		digits = luatext.FormatG(math.Abs(f), precision, d.alt)
	default:
		digits = strconv.FormatFloat(math.Abs(f), d.verb|0x20, precision, 64)
	}
	if d.alt && !strings.Contains(digits, ".") {
		mantissa, exponent, raised := strings.Cut(digits, "e")
		if digits = mantissa + "."; raised {
			digits += "e" + exponent
		}
	}
	if d.verb == 'E' || d.verb == 'G' {
		digits = strings.ToUpper(digits)
	}
	return d.pad(d.sign(math.Signbit(f)), digits, true)
}

// quoteLua is %q: it returns a literal that Lua reads back.
func quoteLua(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\r':
			b.WriteString(`\r`)
		case 0:
			b.WriteString(`\000`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
