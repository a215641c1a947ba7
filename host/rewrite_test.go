package host

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"obelus/host/internal/sandbox"
)

// logical is a random expression of and, or, not with what Lua itself says it
// is worth. Values are written as Lua literals.
type logical struct{ text, worth string }

func truthy(worth string) bool { return worth != "nil" && worth != "false" }

func drawLogical(t *rapid.T, depth int) logical {
	leaves := []logical{
		{"nil", "nil"}, {"false", "false"}, {"true", "true"}, {"1", "1"}, {`"s"`, `"s"`},
		{"yes", "true"}, {"no", "false"}, {"none", "nil"}, {"n", "5"},
		{"f(false)", "false"}, {"f(nil)", "nil"}, {"f(7)", "7"}, {"n > 3", "true"}, {"n == nil", "false"}, {"(n < 3)", "false"},
		{"t.x", "nil"}, {"t.y", "8"},
	}
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	case 1:
		a := drawLogical(t, depth-1)
		return logical{"not (" + a.text + ")", fmt.Sprint(!truthy(a.worth))}
	case 2:
		a, b := drawLogical(t, depth-1), drawLogical(t, depth-1)
		worth := a.worth
		if truthy(a.worth) {
			worth = b.worth
		}
		return logical{"(" + a.text + ") and (" + b.text + ")", worth}
	default:
		a, b := drawLogical(t, depth-1), drawLogical(t, depth-1)
		worth := b.worth
		if truthy(a.worth) {
			worth = a.worth
		}
		return logical{"(" + a.text + ") or (" + b.text + ")", worth}
	}
}

// TestCompile_Logic holds the rewritten code to Lua's meaning, wherever an expression
// may stand.
func TestCompile_Logic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, before := drawLogical(t, 4), drawLogical(t, 1)
		branch := "else"
		if truthy(e.worth) {
			branch = "then"
		}
		source := strings.NewReplacer("EXPR", e.text, "BEFORE", before.text).Replace(`
			local yes, no, none, n, t = true, false, nil, 5, {y = 8}
			local function f(v) return v, "second" end
			local out = {}
			local function is(where, v) out[#out + 1] = where .. "=" .. (type(v) == "string" and '"s"' or tostring(v)) end
			local a = EXPR; is("local", a)
			local b = BEFORE; b = EXPR; is("assigned", b)
			n, yes = n, yes; yes = yes; local c, d = BEFORE, 1; c, d = EXPR, EXPR; is("first", c); is("second", d)
			local up = BEFORE; (function() up = EXPR end)(); is("upvalue", up)
			global = EXPR; is("global", global)
			t.z = EXPR; is("field", t.z)
			is("constructor", ({EXPR})[1]); is("argument", (EXPR))
			is("returned", (function() return EXPR end)())
			if EXPR then is("if", "s") else is("else", "s") end
			local i = 0; while EXPR do i = i + 1; if i == 2 then break end end; is("while", i)
			i = 0; repeat i = i + 1; until i == 2 or (EXPR); is("repeat", i)
			local keep = n; n = n and (EXPR); is("self", n)
			return table.concat(out, ";")`)
		sc, err := sandbox.NewScript("a.lua", []byte(source), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s := bareSession()
		s.begin(context.Background(), time.Minute, sc, nil)
		got, err := s.RunFile(sc)
		if err != nil {
			t.Fatalf("%v in %s", err, source)
		}
		loops, repeats := 0, 2
		if truthy(e.worth) {
			loops, repeats = 2, 1
		}
		w := e.worth
		conditional := map[string]string{"then": `if="s"`, "else": `else="s"`}[branch]
		want := fmt.Sprintf("local=%[1]s;assigned=%[1]s;first=%[1]s;second=%[1]s;upvalue=%[1]s;global=%[1]s;field=%[1]s;constructor=%[1]s;argument=%[1]s;returned=%[1]s;%[2]s;while=%[3]d;repeat=%[4]d;self=%[1]s", w, conditional, loops, repeats)
		if got.String() != want {
			t.Fatalf("%s\ngot  %s\nwant %s", e.text, got, want)
		}
	})
}

// TestCompile_Mistakes: what these come to in any Lua 5.1.
func TestCompile_Mistakes(t *testing.T) {
	ones := func(n int) string { return strings.Repeat("1, ", n-1) + "1" }
	for source, want := range map[string]string{
		`local function f(a, ...) local x, y = 1, 2; a = (...); return show(a, x, y) end return f(1) .. f(1, 5)`:       "nil 1 2;5 1 2;",
		`local function f(a, ...) local x, y = 1, 2; a, x = (...), ...; return show(a, x, y) end return f(1, 5)`:       "5 5 2;",
		`local t = {}; local old = t; t.next, t = "a", {}; return show(old.next, t.next)`:                              "a nil;",
		`local t = {}; local old = t; t, t.next = {}, "a"; return show(old.next, t.next)`:                              "a nil;",
		`local i, t = 1, {}; i, t[i] = i + 1, 20; t[i], i = 7, 9; return show(i, t[1], t[2])`:                          "9 20 7;",
		`local n, t = 1, {}; (function() n, t.n = 2, 3 end)(); return show(n, t.n)`:                                    "2 3;",
		`local t = {u = {}}; local u = t.u; t.u.a, t.u, t.v = 1, 2, 3; return show(u.a, t.u, t.v)`:                     "1 2 3;",
		`local t = {}; local function f() t[#t + 1] = "inner" end; t[#t + 1] = f() or "outer"; return show(unpack(t))`: "outer;",
		`local type = function(x) return "a " .. type(x) end; return show(type(1))`:                                    "a number;",
		`local f = function() return f end; return show(f())`:                                                          "nil;",
		`local f = ("x" or y) and function() return f end; return show(f())`:                                           "nil;",
		`local function f(n) return n == 0 and "end" or f(n - 1) end; return show(f(3))`:                               "end;",
		`local s; repeat local function f(n) return n == 0 or f(n - 1) end; local done = f(3); local g = function() return g end; s = show(g())
			until (function() local function f(n) return n == 0 or f(n - 1) end; return done and f(2) end)(); return s`: "nil;",
		`local s = ""; for k, v in next, {a = 1} do s = s .. show(k, v) end; return s`:                                                  "a 1;",
		`local s, t = "", {4, 5}; do local a, b, c, d, e, f = 1, 2, 3, 4, 5, 6 end; for k in next, t do s = s .. show(k) end; return s`: "1;2;",
		`local T = {iter = function(t) return next, t end}; local function f() return T end; function T:self() return self end; local s = ""
			for k in f().iter{4} do s = s .. show(k) end; for k in T:self().iter{4} do s = s .. show(k) end; for k in f(f)["iter"]({4, 5}) do s = s .. show(k) end; return s`: "1;1;1;2;",
		`local function f(g) return g end; local s = ""; for k in f(pairs){4} do s = s .. show(k) end; for k in f(f)(next), {4} do s = s .. show(k) end; for k in f(function() return f(function(_, k) if not k then return 2 end end) end){} or f do s = s .. show(k) end; return s`: "1;1;2;",
		`local function f(g) return g end; local t = {u = {4, 5}}; function t:m() return next, self.u end; local s = ""; for k in f(t):m() do s = s .. show(k) end; for k, v in f(f)(pairs)(f(t).u) do s = s .. show(k, v) end; return s`:                                             "1;2;1 4;2 5;",
		`local function f(g) return g end; local s = ""; for i in f(function(n, i) if i < n then return i + 1 end end), 3, 0 do if i == 2 then break end; s = s .. show(i) end; for k in f(pairs){} do end; return s`:                                                                 "1;",
		`local s = ""; for a in function(...) s = s .. show(...) end do end; return s`:                                                                                                  "nil nil;",
		`local s = ""; local function f(...) return ... end; for k in next, f({4, 5}) do s = s .. show(k) end; return s`:                                                                "1;2;",
		`local s = ""; local function f(...) return ... end; for k in next, f({4, 5}, 1) do s = s .. show(k) end; return s`:                                                             "2;",
		`local s = ""; local function f(...) return ... end; for k, v in next, {4, 5}, f(1) do s = s .. show(k, v) end; return s`:                                                       "2 5;",
		`local s = ""; (function(...) for k in next, (...) do s = s .. show(k) end end)({4, 5}, 1); return s`:                                                                           "1;2;",
		`local s = ""; (function(...) for k in next, ... do s = s .. show(k) end end)({4, 5}, 1); return s`:                                                                             "2;",
		`local function f(...) return ... end; local t = {` + ones(50) + `, k = 2}; return show(#t, t[1], t[50], t.k)`:                                                                  "50 1 1 2;",
		`local function f(...) return ... end; local t = {` + ones(50) + `, ["x y"] = f(2, 3)}; return show(#t, t[1], t["x y"])`:                                                        "50 1 2;",
		`local function f(...) return ... end; local t = {` + ones(50) + `, f(2, 3)}; return show(#t, t[1], t[50], t[51], t[52])`:                                                       "52 1 1 2 3;",
		`local function f(...) return ... end; local t = {` + ones(50) + `, f()}; return show(#t, t[1])`:                                                                                "50 1;",
		`local function f(...) return ... end; local t = {` + ones(100) + `, f(2, nil, 3)}; return show(t[1], t[51], t[101], t[102], t[103])`:                                           "1 1 2 nil 3;",
		`local function f(...) return ... end; local t = {` + ones(50) + `, k = 4, f(2, 3)}; return show(#t, t[1], t[51], t[52], t.k)`:                                                  "52 1 2 3 4;",
		`local t = {` + ones(50) + `, a = 2, ` + ones(50) + `, b = 3, 4}; return show(#t, t[1], t[50], t[51], t[101], t.a, t.b)`:                                                        "101 1 1 1 4 2 3;",
		`local t = {` + ones(25551) + `}; return show(#t, t[1], t[2], t[25551])`:                                                                                                        "25551 1 1 1;",
		`local t = {` + ones(50) + `, [1] = 2, [51] = 3, [52] = 3, 4}; return show(#t, t[1], t[51], t[52])`:                                                                             "52 2 4 3;",
		`local t = {` + ones(50) + strings.Repeat(`, [#"k"] = 2`, 1000) + `, [2] = 3}; return show(#t, t[1], t[2])`:                                                                     "50 2 3;",
		`local s = ""; local function f(n) s = s .. n; return n end; local t = {` + ones(49) + `, f(1), k = f(2), f(3), [f(4)] = f(5), k = f(6)}; return show(s, #t, t.k, t[4], t[51])`: "123456 51 6 5 3;",
		`local function f() return 1, 2, 3 end; local t = {` + ones(49) + `, f(), k = 3}; return show(#t, t[50], t[51])`:                                                                "50 1 nil;",
		`local function f() return 1, 2, 3 end; local t = {` + ones(49) + `, f(), f()}; return show(#t, t[50], t[51], t[53])`:                                                           "53 1 1 3;",
		`local function f() return 1, 2, 3 end; local t = {` + ones(49) + `, f(), (function() end)()}; return show(#t)`:                                                                 "50;",
		`local function f() return 1, 2, 3 end; local t = {` + ones(50) + `, k = 1, f(), [99] = 7}; return show(t[51], t[52], t[99])`:                                                   "1 nil 7;",
		`local function f() return 1, 2, 3 end; local t = {` + ones(24999) + `, f(), f(), k = 1}; return show(#t, t[25002])`:                                                            "25001 nil;",
		`local function f() return 1, 2, 3 end; local t = {` + ones(50) + `, k = 1, f(), f(), ` + ones(12500) + `, f()}; return show(#t)`:                                               "12555;",
		`local t = {` + ones(50) + `, [60] = 0, 4, [51] = 5}; return show(t[51], t[60])`:                                                                                                "4 0;",
		`local t = {` + ones(50) + `, [51] = 5, [52] = 6, nil, 7}; return show(t[51], t[52])`:                                                                                           "nil 7;",
		`local t = {` + ones(50) + `, [51] = 5, ` + ones(50) + `, [51] = 6, [101] = 7, 8}; return show(t[51], t[101])`:                                                                  "6 8;",
		`local t = {` + ones(50) + strings.Repeat(`, [#"k"] = 2`, 30000) + `, [2] = 3}; return show(#t, t[1], t[2])`:                                                                    "50 2 3;",
		`local k; return show(pcall(function() return {` + ones(50) + `, [k] = 2} end))`:                                                                                                "false a.lua:1: table index is nil;",
		`local function f(...) return ... end; local t = {k = 5, ` + ones(30000) + `, j = 6, f(2, 3)}; return show(#t, t[1], t[30001], t[30002], t.j, t.k)`:                             "30002 1 2 3 6 5;",
		`local function f(...) return ... end; local t = {` + ones(50000) + `, f(2, 3)}; return show(#t, t[1], t[50000], t[50001], t[50002])`:                                           "50002 1 1 2 3;",
	} {
		sc, err := sandbox.NewScript("a.lua", []byte(`local function show(...) local s = {...}; for i = 1, select("#", ...) do s[i] = tostring(s[i]) end; return table.concat(s, " ") .. ";" end `+source), 1<<20)
		if err != nil {
			t.Fatalf("%v in %s", err, source)
		}
		s := bareSession()
		s.begin(context.Background(), time.Minute, sc, nil)
		if got, err := s.RunFile(sc); err != nil || got.String() != want {
			t.Errorf("%s\ngot  %v, %v\nwant %s", source, got, err, want)
		}
		s.end()
	}
}

// TestCompile_LongExpressions: rows of operators, calls and arguments as generated rules have them.
func TestCompile_LongExpressions(t *testing.T) {
	row := func(n int, part string) string { return strings.Repeat(part, n-1) }
	numbers := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(i+1))
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct{ name, source, want string }{
		{"literals", "return " + row(3000, "1 + ") + "1", "3000"},
		{"sum", "return " + row(3000, "x + ") + "x", "3000"},
		{"minus", "return " + row(3000, "x - ") + "x", "-2998"},
		{"and", "return " + row(3000, "x and ") + "7", "7"},
		{"or", "return " + row(3000, "no or ") + "7", "7"},
		{"both", "return " + row(1500, "x == 2 and x == 3 or ") + "7", "7"},
		{"not", "return " + row(2000, "not x or ") + "7", "7"},
		{"equal", "return tostring(" + row(3000, "x == ") + "x)", "false"},
		{"in an if", "if " + row(3000, "x == 2 or ") + "x == 1 then return 7 end", "7"},
		{"in a while", "while " + row(3000, "no or ") + "x do return 7 end", "7"},
		{"assigned", "local a = x; a = " + row(3000, "no or ") + "a; return a", "1"},
		{"calls", "return f" + row(3001, "(1)") + ".n", "5"},
		{"methods", "return f" + row(3001, ":m(2)") + ".n", "5"},
		{"indices", "return f" + row(3001, ".self") + ".n", "5"},
		{"arguments", "return show(" + numbers(250) + ")", "250 1 250"},
		{"arguments with nil", "return show(nil, " + numbers(200) + ", nil)", "202 nil nil"},
		{"a call last", "return show(" + numbers(149) + ", two())", "151 1 9"},
		{"a call last in a part", "return show(" + numbers(99) + ", two(), two())", "102 1 9"},
		{"a call alone in a part", "return show(" + numbers(150) + ", two())", "152 1 9"},
		{"one value last", "return show(" + numbers(200) + ", (two()))", "201 1 8"},
		{"... last", "return (function(...) return show(" + numbers(200) + ", ...) end)(4, 5, 6)", "203 1 6"},
		{"arguments of a method", "return f:all(" + numbers(249) + ")", "249 1 249"},
		{"arguments within arguments", "return show(" + numbers(200) + ", show(" + numbers(201) + "))", "201 1 201 1 201"},
		{"arguments beside locals", "local a, b, c, d, e, g, h = 1, 2, 3, 4, 5, 6, 7; return show(" + numbers(249) + ", a + h)", "250 1 8"},
		{"a coroutine", "local co = coroutine.wrap(function() return show(" + numbers(149) + ", coroutine.yield(3)) end); co(); return co(11)", "150 1 11"},
		{"too many arguments", "return show(" + numbers(251) + ")", "a.lua:2: a call has 251 arguments (at most 250)"},
		{"a row that is too long", "return " + row(6000, "x + ") + "x", "a.lua:2: nested deeper than 200 (of operators or calls in a row 25 count as one level)"},
		{"rows within rows", "return " + strings.Repeat("x + (", 60) + "x" + strings.Repeat(")"+row(101, " + x"), 60), "a.lua:2: nested deeper than 200"},
		{"powers", "return " + row(300, "x ^ ") + "x", "a.lua:2: nested deeper than 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := `local x, no, f = 1, nil, setmetatable({ n = 5 }, { __call = function(f) return f end }); f.self = f; function f:m() return self end; local function two() return 8, 9 end; local function show(...) local n = select("#", ...); return n .. " " .. tostring((...)) .. " " .. tostring((select(n, ...))) end; function f:all(...) return show(...) end` + "\n" + c.source
			sc, err := sandbox.NewScript("a.lua", []byte(source), 1<<20)
			got := fmt.Sprint(err)
			if err == nil {
				s := bareSession()
				s.begin(context.Background(), time.Minute, sc, nil)
				defer s.end()
				v, err := s.RunFile(sc)
				if got = fmt.Sprint(err); err == nil {
					got = v.String()
				}
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestCompile_LongestSource: a file that is one row after another is compiled or refused in time.
func TestCompile_LongestSource(t *testing.T) {
	for _, part := range []string{"+x", " and x", " or x", "==x", "==1 or x", "(x)", ":f(x)", ".x", "-#x"} {
		for _, n := range []int{100, 4900, 1 << 18} {
			row := "y = x" + strings.Repeat(part, min(n, 1<<18/len(part))) + "\n"
			source := strings.Repeat(row, max(1, 1<<18/len(row)))
			began := time.Now()
			_, err := sandbox.NewScript("a.lua", []byte(source), 1<<20)
			refused := n > 4900
			if took := time.Since(began); took > 20*time.Second || refused != (err != nil) && part != "==1 or x" {
				t.Errorf("%q in rows of %d: %v after %s", part, n, err, took)
			}
		}
	}
}
