package sandbox

import (
	"math"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/strftime"
	"obelus/host/internal/luatext"
	"obelus/luastd"
)

// osStubs are functions of os that libraries look for and that do nothing.
var osStubs = []StateEntry{
	{"exit", raising("os.exit is not available in scripts: return, or raise an error")},
	{"getenv", func(s *State, L *lua.LState) int { L.Push(lua.LNil); return 1 }},
}

// osFuncs are functions of os that libraries in Lua use and that can do no harm.
var osFuncs = []StateEntry{
	{"clock", osClock},
	{"date", osDate},
	{"difftime", math2(func(a, b float64) float64 { return a - b })},
	{"time", osTime},
}

func osClock(s *State, L *lua.LState) int {
	s.vary()
	return Push(L, lua.LNumber(time.Since(s.Budget.Start).Seconds()))
}

// osDate is os.date(format, t), always in UTC.
func osDate(s *State, L *lua.LState) int {
	s.vary()
	format := L.OptString(1, "%c")
	at := s.Project.Clock.Now().UTC()
	if L.Get(2) != lua.LNil {
		at = TimeArgument(L, 2)
	}
	if format != "" && format[0] == '!' {
		format = format[1:]
	}
	if format != "*t" {
		text, err := strftime.Format(at, format)
		if err != nil {
			L.ArgError(1, err.Error())
		}
		return Push(L, lua.LString(text))
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
	return Push(L, t)
}

// TimeArgument returns an argument that must be seconds since 1970.
func TimeArgument(L *lua.LState, arg int) time.Time {
	t, err := luastd.Time(float64(number(L, arg)))
	if err != nil {
		L.ArgError(arg, err.Error())
	}
	return t
}

// osTime is os.time([table]), always in UTC.
func osTime(s *State, L *lua.LState) int {
	s.vary()
	t := L.OptTable(1, nil)
	if t == nil {
		return Push(L, lua.LNumber(s.Project.Clock.Now().Unix()))
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
		if !(math.Abs(float64(n)) < 1e12) { // beyond, a difference of a second would matter
			L.RaiseError("field '%s' of the date table is out of range", name)
		}
		return int(n)
	}
	at := time.Date(part("year", -1), time.Month(part("month", -1)), part("day", -1), part("hour", 12), part("min", 0), part("sec", 0), 0, time.UTC)
	if at.Year() < 0 || at.Year() > 9999 { // the range of time.format and os.date
		return Push(L, lua.LNil)
	}
	return Push(L, lua.LNumber(at.Unix()))
}
