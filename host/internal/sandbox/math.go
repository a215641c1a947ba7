package sandbox

import (
	"math"
	"math/rand/v2"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luatext"
)

// mathFuncs is Lua 5.1's math.
var mathFuncs = []StateEntry{
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
	{"max", extremum(func(a, b lua.LNumber) lua.LNumber { return max(a, b) })},
	{"min", extremum(func(a, b lua.LNumber) lua.LNumber { return min(a, b) })},
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

func math1(f func(float64) float64) Function {
	return func(_ *State, L *lua.LState) int {
		return Push(L, lua.LNumber(f(float64(number(L, 1)))))
	}
}

func math2(f func(a, b float64) float64) Function {
	return func(_ *State, L *lua.LState) int {
		return Push(L, lua.LNumber(f(float64(number(L, 1)), float64(number(L, 2)))))
	}
}

func mathFrexp(s *State, L *lua.LState) int {
	fraction, exponent := math.Frexp(float64(number(L, 1)))
	return Push(L, lua.LNumber(fraction), lua.LNumber(exponent))
}

// extremum returns math.max or math.min.
func extremum(best func(a, b lua.LNumber) lua.LNumber) Function {
	return func(_ *State, L *lua.LState) int {
		v := number(L, 1)
		for i := 2; i <= L.GetTop(); i++ {
			v = best(v, number(L, i))
		}
		return Push(L, v)
	}
}

func mathModf(s *State, L *lua.LState) int {
	x := float64(number(L, 1))
	whole := math.Trunc(x)
	fraction := x - whole
	if math.IsInf(x, 0) {
		fraction = 0
	}
	return Push(L, lua.LNumber(whole), lua.LNumber(fraction))
}

func mathRandom(s *State, L *lua.LState) int {
	s.vary()
	float, below := rand.Float64, rand.Int64N
	if seeded := s.Run.random; seeded != nil {
		float, below = seeded.Float64, seeded.Int64N
	}
	if L.GetTop() == 0 {
		return Push(L, lua.LNumber(float()))
	}
	low, high := 1.0, math.Floor(float64(number(L, 1)))
	if L.GetTop() > 1 {
		low, high = high, math.Floor(float64(number(L, 2)))
	}
	if !(low <= high) || high-low >= luatext.MaxExact {
		L.ArgError(L.GetTop(), "interval is empty")
	}
	return Push(L, lua.LNumber(low+float64(below(int64(high-low)+1))))
}

// mathRandomseed is math.randomseed(seed): later numbers of the call are the same for the same
// seed. Without one they are unpredictable again.
func mathRandomseed(s *State, L *lua.LState) int {
	s.vary()
	if L.GetTop() == 0 {
		s.Run.random = nil
		return 0
	}
	s.Run.random = rand.New(rand.NewPCG(math.Float64bits(float64(number(L, 1))), 0))
	return 0
}
