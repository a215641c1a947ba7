package host

import (
	"math"
	"math/rand/v2"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luatext"
	"obelus/luastd"
)

// mathFuncs is Lua 5.1's math. randomseed is accepted and does nothing: the
// generator is shared by all scripts.
var mathFuncs = []entry{
	{"abs", math1(math.Abs)},
	{"acos", math1(math.Acos)},
	{"asin", math1(math.Asin)},
	{"atan", math1(math.Atan)},
	{"atan2", math2(math.Atan2)},
	{"ceil", math1(math.Ceil)},
	{"cos", math1(math.Cos)},
	{"cosh", math1(math.Cosh)},
	{"deg", math1(func(x float64) float64 { return x * 180 / math.Pi })},
	{"exp", math1(math.Exp)},
	{"floor", math1(math.Floor)},
	{"fmod", math2(math.Mod)},
	{"frexp", mathFrexp},
	{"ldexp", math2(func(x, e float64) float64 { return math.Ldexp(x, int(e)) })},
	{"log", math1(math.Log)},
	{"log10", math1(math.Log10)},
	{"max", mathMax},
	{"min", mathMin},
	{"modf", mathModf},
	{"pow", math2(math.Pow)},
	{"rad", math1(func(x float64) float64 { return x / 180 * math.Pi })},
	{"random", mathRandom},
	{"randomseed", mathRandomseed},
	{"sin", math1(math.Sin)},
	{"sinh", math1(math.Sinh)},
	{"sqrt", math1(math.Sqrt)},
	{"tan", math1(math.Tan)},
	{"tanh", math1(math.Tanh)},
}

func math1(f func(float64) float64) luaFunc {
	return func(_ *state, L *lua.LState) int {
		L.Push(lua.LNumber(f(float64(number(L, 1)))))
		return 1
	}
}

func math2(f func(a, b float64) float64) luaFunc {
	return func(_ *state, L *lua.LState) int {
		L.Push(lua.LNumber(f(float64(number(L, 1)), float64(number(L, 2)))))
		return 1
	}
}

func mathFrexp(s *state, L *lua.LState) int {
	fraction, exponent := math.Frexp(float64(number(L, 1)))
	L.Push(lua.LNumber(fraction))
	L.Push(lua.LNumber(exponent))
	return 2
}

func mathMax(s *state, L *lua.LState) int {
	best := number(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		best = max(best, number(L, i))
	}
	L.Push(best)
	return 1
}

func mathMin(s *state, L *lua.LState) int {
	best := number(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		best = min(best, number(L, i))
	}
	L.Push(best)
	return 1
}

func mathModf(s *state, L *lua.LState) int {
	x := float64(number(L, 1))
	whole := math.Trunc(x)
	fraction := x - whole
	if math.IsInf(x, 0) {
		fraction = 0
	}
	L.Push(lua.LNumber(whole))
	L.Push(lua.LNumber(fraction))
	return 2
}

func mathRandom(s *state, L *lua.LState) int {
	float, below := rand.Float64, rand.Int64N
	if seeded := s.run.random; seeded != nil {
		float, below = seeded.Float64, seeded.Int64N
	}
	if L.GetTop() == 0 {
		L.Push(lua.LNumber(float()))
		return 1
	}
	low, high := 1.0, math.Floor(float64(number(L, 1)))
	if L.GetTop() > 1 {
		low, high = high, math.Floor(float64(number(L, 2)))
	}
	if !(low <= high) || high-low >= luatext.MaxExact {
		L.ArgError(L.GetTop(), "interval is empty")
	}
	L.Push(lua.LNumber(low + float64(below(int64(high-low)+1))))
	return 1
}

// mathRandomseed is math.randomseed(seed): what the call draws from now on is the
// same for the same seed. Without one it can't be foreseen again.
func mathRandomseed(s *state, L *lua.LState) int {
	if L.GetTop() == 0 {
		s.run.random = nil
		return 0
	}
	s.run.random = rand.New(rand.NewPCG(math.Float64bits(float64(number(L, 1))), 0))
	return 0
}

// osFuncs is what pure-Lua libraries expect of os and what can do no harm.
var osFuncs = []entry{
	{"clock", osClock},
	{"date", osDate},
	{"difftime", math2(func(a, b float64) float64 { return a - b })},
	{"time", osTime},
}

func osClock(s *state, L *lua.LState) int {
	L.Push(lua.LNumber(time.Since(s.budget.Start).Seconds()))
	return 1
}

// osDate is os.date(format, t), always in UTC.
func osDate(s *state, L *lua.LState) int {
	format := L.OptString(1, "%c")
	at := s.project.clock.Now().UTC()
	if L.Get(2) != lua.LNil {
		at = timeArg(L, 2)
	}
	if format != "" && format[0] == '!' {
		format = format[1:]
	}
	if format != "*t" {
		text, err := luastd.FormatTime(at, format)
		if err != nil {
			L.ArgError(1, err.Error())
		}
		L.Push(lua.LString(text))
		return 1
	}
	t := L.CreateTable(0, 9)
	for _, f := range []struct {
		name string
		n    int
	}{
		{"day", at.Day()}, {"hour", at.Hour()}, {"min", at.Minute()}, {"month", int(at.Month())}, {"sec", at.Second()},
		{"wday", int(at.Weekday()) + 1}, {"yday", at.YearDay()}, {"year", at.Year()},
	} {
		t.RawSetString(f.name, lua.LNumber(f.n))
	}
	t.RawSetString("isdst", lua.LFalse)
	L.Push(t)
	return 1
}

// timeArg is an argument that must be seconds since 1970.
func timeArg(L *lua.LState, arg int) time.Time {
	t, err := luastd.Time(float64(number(L, arg)))
	if err != nil {
		L.ArgError(arg, err.Error())
	}
	return t
}

// osTime is os.time([table]), always in UTC.
func osTime(s *state, L *lua.LState) int {
	t := L.OptTable(1, nil)
	if t == nil {
		L.Push(lua.LNumber(s.project.clock.Now().Unix()))
		return 1
	}
	part := func(name string, missing int) int {
		v := L.GetField(t, name)
		if v == lua.LNil && missing >= 0 {
			return missing
		}
		n, ok := luatext.ToNumber(v)
		switch {
		case v == lua.LNil:
			L.RaiseError("field '%s' missing in date table", name)
		case !ok:
			L.RaiseError("field '%s' of the date table is not a number", name)
		}
		if !(math.Abs(float64(n)) < 1e12) { // a second more or less would count, if there were such a date
			L.RaiseError("field '%s' of the date table is out of range", name)
		}
		return int(n)
	}
	at := time.Date(part("year", -1), time.Month(part("month", -1)), part("day", -1), part("hour", 12), part("min", 0), part("sec", 0), 0, time.UTC)
	if at.Year() < 0 || at.Year() > 9999 { // as time.format and os.date have it
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(at.Unix()))
	return 1
}
