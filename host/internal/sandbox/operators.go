package sandbox

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/codec"
	"obelus/host/internal/limits"
	"obelus/host/internal/luac"
	"obelus/host/internal/luatext"
)

// Functions are the functions that rewritten code calls. They find their state by the context of
// the thread, so that all states share them together with the compiled code.
var Functions = luac.Functions{
	luac.CallAt:     hostFunction(atCall),
	luac.CallFill:   hostFunction(func(s *State, L *lua.LState) int { return luac.FillTable(L, &s.Budget) }),
	luac.CallConcat: hostFunction(concatCall),
	luac.CallLength: hostFunction(lengthCall),
	luac.CallBound:  hostFunction(boundCall),
	luac.CallMinus:  hostFunction(minusCall),
	luac.CallAdapt:  hostFunction(adaptCall),
	luac.CallGlobal: hostFunction(baseGetfenv),
	luac.CallSame:   hostFunction(func(_ *State, L *lua.LState) int { return Push(L, L.Get(1)) }),
	luac.CallPack:   hostFunction(packCall),
	luac.CallUnpack: hostFunction(unpackCall),
}

func hostFunction(f Function) *lua.LFunction {
	return &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int { return f(L.Context().(*budget.Budget).Owner.(*State), L) }}
}

// atCall is the function behind luac.CallAt.
func atCall(s *State, L *lua.LState) int {
	table := L.CheckTable(2)
	if s.Run != nil && s.Run.Lines != nil {
		s.Run.Lines[table] = L.CheckInt(1)
	}
	return Push(L, table)
}

// packCall is the function behind luac.CallPack.
func packCall(s *State, L *lua.LState) int {
	part := make([]lua.LValue, L.GetTop())
	s.Budget.Charge(L, len(part))
	for i := range part {
		part[i] = L.Get(i + 1)
	}
	return Push(L, &lua.LUserData{Value: part})
}

// unpackCall is the function behind luac.CallUnpack.
func unpackCall(_ *State, L *lua.LState) (n int) {
	for i := range L.GetTop() {
		part, _ := L.CheckUserData(i + 1).Value.([]lua.LValue)
		for _, v := range part {
			L.Push(v)
		}
		n += len(part)
	}
	return n
}

// concatCall is the operator .. with a limit.
func concatCall(s *State, L *lua.LState) int {
	n := L.GetTop()
	total, plain := 0, true
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			total += len(v)
		case lua.LNumber:
			total += 8
		default:
			if text, ok := codec.ErrorText(v); ok {
				L.Replace(i, lua.LString(text))
				total += len(text)
				continue
			}
			plain = false
		}
	}
	if !plain {
		return concatMeta(s, L, n)
	}
	s.checkLength(L, total)
	var b strings.Builder
	b.Grow(total)
	for i := 1; i <= n; i++ {
		b.WriteString(s.toText(L, L.Get(i)))
	}
	return Push(L, lua.LString(b.String()))
}

// concatMeta concatenates from the right, with some operand that is not text.
func concatMeta(s *State, L *lua.LState, n int) int {
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		if lua.LVCanConvToString(left) && lua.LVCanConvToString(right) {
			a, b := s.toText(L, left), s.toText(L, right)
			s.checkLength(L, len(a)+len(b))
			right = lua.LString(a + b)
			continue
		}
		meta := L.GetMetaField(left, "__concat")
		if meta == lua.LNil {
			meta = L.GetMetaField(right, "__concat")
		}
		if meta == lua.LNil {
			bad, operand := left, i
			if lua.LVCanConvToString(bad) {
				bad, operand = right, i+1
			}
			L.RaiseError("attempt to concatenate a %s value (operand %d)", bad.Type(), operand)
		}
		right = callFunction(L, meta, left, right)
	}
	return Push(L, right)
}

// lengthCall is the operator #.
func lengthCall(s *State, L *lua.LState) int {
	switch v := L.Get(1).(type) {
	case lua.LString:
		L.Push(lua.LNumber(len(v)))
	case *lua.LTable:
		s.Fill(v)
		n := v.Len()
		if n >= limits.MaxArray-1 {
			L.RaiseError("a table has too many elements (at most %d)", limits.MaxArray-2)
		}
		L.Push(lua.LNumber(n))
	default:
		if L.GetMetaField(v, "__len") == lua.LNil {
			L.RaiseError("attempt to get the length of a %s value", v.Type())
		}
		L.Push(lua.LNumber(L.ObjLen(v)))
	}
	return 1
}

// mixedArithmetic is arithmetic on operands that are not both numbers.
func mixedArithmetic(s *State, L *lua.LState, name string) int {
	left, right := L.Get(1), L.Get(2)
	a, ok := arithmeticOperand(s, L, left)
	b, ok2 := arithmeticOperand(s, L, right)
	if ok && ok2 {
		return Push(L, lua.LNumber(luac.Arithmetic[name](float64(a), float64(b))))
	}
	event := "__" + name
	if !lua.LVCanConvToString(right) { // the other operand may have a metamethod
		if meta := L.GetMetaField(right, event); meta != lua.LNil {
			return Push(L, callFunction(L, meta, left, right))
		}
	}
	L.RaiseError("cannot perform %s operation between %s and %s", name, left.Type(), right.Type())
	return 0
}

// boundCall returns a bound of a for loop as a number, which text may stand for.
func boundCall(s *State, L *lua.LState) int {
	v := L.Get(1)
	n, ok := v.(lua.LNumber)
	if !ok {
		if n, ok = arithmeticOperand(s, L, v); !ok {
			L.RaiseError("for statement %s must be a number, not %s", L.CheckString(2), v.Type())
		}
	}
	return Push(L, n)
}

// minusCall is the operator - before a value. The interpreter's own gives __unm one argument
// instead of two.
func minusCall(s *State, L *lua.LState) int {
	v := L.Get(1)
	n, ok := v.(lua.LNumber)
	if !ok {
		n, ok = arithmeticOperand(s, L, v)
	}
	if ok {
		return Push(L, -n)
	}
	meta := L.GetMetaField(v, "__unm")
	if meta == lua.LNil {
		L.RaiseError("cannot perform unm operation between %[1]s and %[1]s", v.Type())
	}
	return Push(L, callFunction(L, meta, v, v))
}

// arithmeticOperand is [luatext.ToNumber], except for text of an integer that a number may not
// hold: integers that come from JSON as text must not be rounded silently.
func arithmeticOperand(s *State, L *lua.LState, v lua.LValue) (lua.LNumber, bool) {
	n, ok := luatext.ToNumber(v)
	text, isText := v.(lua.LString)
	if !ok || !isText || math.Abs(float64(n)) < luatext.MaxExact {
		return n, ok
	}
	digits := strings.TrimLeft(strings.TrimSpace(string(text)), "+-0")
	if luatext.IsDigits(digits) && digits != strconv.Itoa(luatext.MaxExact) {
		L.RaiseError("arithmetic would round the integer %s, which is text since it is beyond 2^53 (tonumber rounds it)", text)
	}
	return n, ok
}

// adaptMetatable replaces callable objects that are operators of a metatable by functions.
func adaptMetatable(s *State, meta *lua.LTable) {
	for _, event := range luac.OperatorEvents {
		if v, ok := meta.RawGetString(event).(*lua.LTable); ok {
			meta.RawSetString(event, adaptObject(s, v))
		}
	}
}

// adaptObject returns a function that calls an object, the same one each time: two metatables share
// __eq only if it is the same. A table that can't be called is returned unchanged.
func adaptObject(s *State, object *lua.LTable) lua.LValue {
	if f, ok := s.Run.adapters[object]; ok {
		return f
	}
	if _, ok := s.L.GetMetaField(object, "__call").(*lua.LFunction); !ok {
		return object
	}
	f := s.Fn(func(s *State, L *lua.LState) int {
		n := L.GetTop()
		L.Insert(object, 1)
		L.Call(n, 1)
		return 1
	})
	if s.Run.adapters == nil {
		s.Run.adapters = map[*lua.LTable]*lua.LFunction{}
	}
	s.Run.adapters[object] = f
	return f
}

// adaptCall is the function behind luac.CallAdapt: it adapts the value that is assigned to a field
// such as __add, since the table may be a metatable in use.
func adaptCall(s *State, L *lua.LState) int {
	if object, ok := L.Get(1).(*lua.LTable); ok {
		return Push(L, adaptObject(s, object))
	}
	L.SetTop(1)
	return 1
}
