package luatest

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/inspect"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/luatext"
	"obelus/host/internal/sandbox"
)

// Assertions have the names of luassert, in each of its forms: words that only make a sentence are
// ignored, and "not" or "no" negates the rest. So assert.equal, assert.are.equal,
// assert.are_not.equal, assert.is_not_nil and assert.has_no.errors all exist.

// check is one assertion. holds returns whether it holds, and a detail for its message.
type check struct {
	args   int // number of arguments
	holds  func(r *testFile, L *lua.LState, args []lua.LValue) (ok bool, detail string)
	wanted string // "matching %1", where %1 is the first argument
	shows  int    // argument that the message shows
	alike  bool   // the first two should be alike
}

var checks = map[string]check{
	"equal":    {2, checkEqual, "the same as %1", 2, true},
	"same":     {2, checkSame, "like %1", 2, true},
	"truthy":   {1, is(func(v lua.LValue) bool { return lua.LVAsBool(v) }), "truthy", 1, false},
	"falsy":    {1, is(func(v lua.LValue) bool { return !lua.LVAsBool(v) }), "falsy", 1, false},
	"true":     {1, is(func(v lua.LValue) bool { return v == lua.LTrue }), "true", 1, false},
	"false":    {1, is(func(v lua.LValue) bool { return v == lua.LFalse }), "false", 1, false},
	"nil":      {1, is(func(v lua.LValue) bool { return v == lua.LNil }), "nil", 1, false},
	"string":   {1, isType(lua.LTString), "a string", 1, false},
	"number":   {1, isType(lua.LTNumber), "a number", 1, false},
	"boolean":  {1, isType(lua.LTBool), "a boolean", 1, false},
	"table":    {1, isType(lua.LTTable), "a table", 1, false},
	"function": {1, isType(lua.LTFunction), "a function", 1, false},
	"matches":  {2, checkMatches, "matching %1", 2, false},
	"near":     {3, checkNear, "within %3 of %1", 2, true},
	"error":    {1, checkError, "a function that raises", 1, false},
}

var checkAliases = map[string]string{"equals": "equal", "falsey": "falsy", "errors": "error", "match": "matches", "same_as": "same"}

// fillers are the words that are ignored.
var fillers = []string{"a", "an", "are", "be", "been", "does", "has", "have", "is", "was"}

// assertTable returns assert itself, which can be called, and has an assertion for every name.
func assertTable(r *testFile) *lua.LTable {
	t := r.s.L.CreateTable(0, 0)
	t.Metatable = r.s.Table([]sandbox.Field{
		{Name: "__call", Value: r.s.L.NewFunction(func(L *lua.LState) int {
			L.Remove(1)
			return assertCall(r, L)
		})},
		{Name: "__index", Value: assertIndex(r, nil)},
	})
	return t
}

// assertCall is assert(v, [message, …]) in tests.
func assertCall(r *testFile, L *lua.LState) int {
	if lua.LVAsBool(L.Get(1)) {
		return L.GetTop()
	}
	message := "assertion failed!"
	if L.GetTop() > 1 {
		message = reasonText(r, L.Get(2))
	}
	L.RaiseError("%s", message)
	return 0
}

// assertIndex returns the __index for assert.word after the words before.
func assertIndex(r *testFile, before []string) *lua.LFunction {
	return r.s.L.NewFunction(func(L *lua.LState) int {
		word := L.CheckString(2)
		v := assertWord(r, word, before)
		if v == lua.LNil {
			name, _ := assertName(assertWords(word, before))
			L.RaiseError("there is no assertion %s%s", strconv.Quote(name), luaerr.DidYouMean(name, slices.Sorted(maps.Keys(checks))))
		}
		return sandbox.Push(L, v)
	})
}

func assertWords(word string, before []string) []string {
	return append(slices.Clone(before), strings.Split(strings.ToLower(word), "_")...)
}

// assertName returns the assertion that words make, and whether it is negated.
func assertName(words []string) (name string, negated bool) {
	var rest []string
	for _, w := range words {
		switch {
		case w == "not" || w == "no":
			negated = !negated
		case !slices.Contains(fillers, w) && w != "":
			rest = append(rest, w)
		}
	}
	name = strings.Join(rest, "_")
	if alias, ok := checkAliases[name]; ok {
		name = alias
	}
	return name, negated
}

// assertWord returns the value of assert.word after the words before: a function if they name an
// assertion, a table if more words may follow, else nil.
func assertWord(r *testFile, word string, before []string) lua.LValue {
	words := assertWords(word, before)
	name, negated := assertName(words)
	if name == "spy" || name == "stub" {
		return r.s.L.NewFunction(func(L *lua.LState) int { return assertSpy(r, L) })
	}
	if c, ok := checks[name]; ok {
		return r.s.L.NewFunction(func(L *lua.LState) int { return runCheck(r, L, name, c, negated) })
	}
	if name != "" {
		return lua.LNil
	}
	t := r.s.L.CreateTable(0, 0)
	t.Metatable = r.s.Table([]sandbox.Field{{Name: "__index", Value: assertIndex(r, words)}})
	return t
}

func runCheck(r *testFile, L *lua.LState, name string, c check, negated bool) int {
	if L.GetTop() < c.args && name != "nil" && name != "falsy" {
		L.RaiseError("assert.%s takes %d arguments", name, c.args)
	}
	args := make([]lua.LValue, max(L.GetTop(), c.args, 3))
	for i := range args {
		args[i] = L.Get(i + 1)
	}
	ok, detail := c.holds(r, L, args)
	if ok != negated {
		return sandbox.Push(L, args[0])
	}
	not := ""
	if negated {
		not = "not "
	}
	first, looked := inspect.Line(r.s, args[0]), inspect.Line(r.s, args[c.shows-1])
	if c.alike && !negated {
		first, looked = inspect.LineDifference(r.s, args[0], args[1])
	}
	wanted := strings.NewReplacer("%1", first, "%3", inspect.Line(r.s, args[2])).Replace(c.wanted)
	if name == "error" && args[1] != lua.LNil {
		wanted += " " + inspect.Line(r.s, args[1])
	}
	a := &assertion{message: "expected " + not + wanted + ", got " + looked + detail}
	if said := messageOf(r, L, name, c); said != "" {
		a.message = said + ": " + a.message
	}
	if c.alike && !negated {
		a.expected, a.actual = inspect.Difference(r.s, args[0], args[1])
	}
	r.failed = a
	L.RaiseError("%s", a.message)
	return 0
}

// messageOf returns the message of a test for an assertion, which follows the arguments.
func messageOf(r *testFile, L *lua.LState, name string, c check) string {
	at := c.args + 1
	switch name {
	case "error": // the raised error
		at++
	case "matches": // the start, and whether it is plain
		for L.Get(at).Type() == lua.LTNumber || L.Get(at).Type() == lua.LTBool {
			at++
		}
	}
	if L.Get(at) == lua.LNil {
		return ""
	}
	return reasonText(r, L.Get(at))
}

// reasonText returns a value as a reason: the message of a table, such as the fields of a failure,
// else its text.
func reasonText(r *testFile, v lua.LValue) string {
	if t, ok := v.(*lua.LTable); ok {
		if fields, err := sandbox.FailureFields(r.s, t); err == nil {
			message, _ := fields["message"].(string)
			return message
		}
	}
	return r.s.PlainText(v)
}

func is(holds func(v lua.LValue) bool) func(*testFile, *lua.LState, []lua.LValue) (bool, string) {
	return func(_ *testFile, _ *lua.LState, args []lua.LValue) (bool, string) { return holds(args[0]), "" }
}

func isType(t lua.LValueType) func(*testFile, *lua.LState, []lua.LValue) (bool, string) {
	return is(func(v lua.LValue) bool { return v.Type() == t })
}

// equal(expected, actual): == says so
func checkEqual(r *testFile, L *lua.LState, args []lua.LValue) (bool, string) {
	detail := ""
	if _, ok := args[0].(*lua.LTable); ok {
		detail = " (another table: assert.same compares what is in them)"
	}
	return L.Equal(args[0], args[1]), detail
}

// same(expected, actual): tables hold the same, all the way down
func checkSame(r *testFile, _ *lua.LState, args []lua.LValue) (bool, string) {
	return sameValues(r, args[0], args[1], 0), ""
}

func sameValues(r *testFile, a, b lua.LValue, depth int) bool {
	x, ok := a.(*lua.LTable)
	y, ok2 := b.(*lua.LTable)
	if !ok || !ok2 || x == y || depth > limits.MaxDepth {
		return a == b
	}
	r.s.Fill(x)
	r.s.Fill(y)
	n := 0
	for key, v := x.Next(lua.LNil); key != lua.LNil; key, v = x.Next(key) {
		n++
		if !sameValues(r, v, y.RawGet(key), depth+1) {
			return false
		}
	}
	for key, _ := y.Next(lua.LNil); key != lua.LNil; key, _ = y.Next(key) {
		n--
	}
	return n == 0
}

// matches(pattern, text)
func checkMatches(r *testFile, L *lua.LState, args []lua.LValue) (bool, string) {
	pattern, ok := args[0].(lua.LString)
	text, ok2 := args[1].(lua.LString)
	if !ok || !ok2 {
		return false, ""
	}
	m := r.s.Matcher(L, string(text), string(pattern))
	start, end := m.Find(0)
	for c := range m.Captures {
		m.Captured(c, start, end) // raises if the pattern leaves one open
	}
	return start >= 0, ""
}

// near(expected, actual, tolerance)
func checkNear(r *testFile, _ *lua.LState, args []lua.LValue) (bool, string) {
	a, ok := luatext.ToNumber(args[0])
	b, ok2 := luatext.ToNumber(args[1])
	c, ok3 := luatext.ToNumber(args[2])
	return ok && ok2 && ok3 && math.Abs(float64(a-b)) <= float64(c), ""
}

// error(fn, [message]): fn raises, and if a message is given, with that
func checkError(r *testFile, L *lua.LState, args []lua.LValue) (bool, string) {
	if args[0].Type() != lua.LTFunction {
		L.ArgError(1, "a function was expected")
	}
	_, err := r.s.CallApart(L, args[0])
	raised := r.s.Raised
	r.s.Raised = nil
	if err == nil {
		return false, " that raised nothing"
	}
	message := luaerr.From(err).Message
	shown := " that raised " + strconv.Quote(message)
	if raised != nil && raised.Value.Type() != lua.LTString {
		shown = " that raised " + inspect.Line(r.s, raised.Value)
	}
	switch want := args[1].(type) {
	case *lua.LNilType:
		return true, shown
	case lua.LString:
		return message == string(want), shown
	}
	return raised != nil && sameValues(r, args[1], raised.Value, 0), shown
}
