package host

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/host/internal/sandbox"
)

var (
	programs  = flag.Int("programs", 500, "how many random Lua programs are compared with a stock lua5.1")
	firstSeed = flag.Uint64("seed", 1, "of the first of them; one that stays, so that a commit always passes or never")
)

// programPrelude is what the programs print by. What the two may say
// differently, and may, is left out: the text of errors, addresses, the order of
// pairs.
const programPrelude = `
local lines = {}
local function show(v, depth)
  local t = type(v)
  if t == "number" then
    if v ~= v then return "nan" end
    if v == 0 then v = 0 end
    return string.format("%.10g", v)
  elseif t == "string" then
    return "'" .. v .. "'"
  elseif t ~= "table" then
    return t == "function" and t or tostring(v)
  end
  if depth > 3 then return "…" end
  local keys = {}
  for k in next, v do keys[#keys + 1] = k end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == "boolean" then return a and not b end
    return a < b
  end)
  local parts = {}
  for _, k in ipairs(keys) do parts[#parts + 1] = show(k, depth + 1) .. "=" .. show(rawget(v, k), depth + 1) end
  return "{" .. table.concat(parts, ",") .. "}"
end
local function str(v)
  local meta = getmetatable(v)
  if type(v) == "function" or type(v) == "table" and not (meta and meta.__tostring) then return type(v) end
  return tostring(v)
end
local function small(v) -- of what is too large for it, a % b is what its division was rounded to
  return type(v) == "number" and not (v > -2^40 and v < 2^40) and 7 or v
end
local function short(v) -- what grows in every turn of a loop is soon longer than a string may be here
  return type(v) == "string" and #v > 1000 and v:sub(1, 1000) or v
end
local function given(...) return ... end
local library = {next = next, list = {4, 5}}
function library:each(t) return next, t or self.list end
local function sorted(t, ...) table.sort(t, ...) return t end
local function inserted(t, ...) table.insert(t, ...) return t end
local function removed(t, ...) return {table.remove(t, ...), t} end
local function out(...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = show((select(i, ...)), 0) end
  lines[#lines + 1] = table.concat(parts, " ")
end
local function try(f, ...)
  local function results(ok, ...)
    if ok then out("ok", ...) else out("raised") end
  end
  results(pcall(f, ...))
end
local function resume(co, ...)
  if type(co) ~= "thread" then return try(co, ...) end
  out(coroutine.status(co))
  try(function(...)
    local function results(ok, ...)
      if ok then return ... end
      error()
    end
    return results(coroutine.resume(co, ...))
  end, ...)
end
`

// programmer writes random programs: logic, loops, closures, strings, tables
// and metatables.
type programmer struct {
	*rand.Rand
	b      strings.Builder
	locals []string
	depth  int
	names  int
	loops  int // around what is being written
	vararg bool
}

func (p *programmer) pick(all ...string) string { return all[p.IntN(len(all))] }

func (p *programmer) line(format string, args ...any) {
	p.b.WriteString(strings.Repeat(" ", p.depth))
	fmt.Fprintf(&p.b, format+"\n", args...)
}

func (p *programmer) name() string {
	if len(p.locals) > 0 && p.IntN(8) > 0 {
		return p.locals[p.IntN(len(p.locals))]
	}
	return p.pick("g1", "g2", "g3")
}

func (p *programmer) fresh() string {
	p.names++
	return fmt.Sprintf("v%d", p.names)
}

func (p *programmer) literal() string {
	return p.pick("nil", "true", "false", "0", "010", `"010"`, "0x1F", "1e2", "5.", "1", "2", "3", "7", "-1", "0.5", "10", `""`, `"a"`, `"bc"`, `"10"`, `"x y"`, `"%d+"`, "{}", "{1, 2, 3}", "{a = 1, b = 'two'}", "{5, nil, 6}", "{{1}, {2}}")
}

// expr is an expression of at most some depth.
func (p *programmer) expr(d int) string {
	if d <= 0 {
		if p.IntN(2) == 0 {
			return p.literal()
		}
		return p.name()
	}
	e := func() string { return p.expr(d - 1) }
	switch p.IntN(25) {
	case 0, 1, 2:
		return "(" + e() + " and " + e() + ")"
	case 3, 4, 5:
		return "(" + e() + " or " + e() + ")"
	case 6:
		return "(not " + e() + ")"
	case 7:
		return "(" + e() + " " + p.pick("==", "~=", "<", "<=", ">", ">=") + " " + e() + ")"
	case 8:
		return "(" + e() + " " + p.pick("+", "-") + " " + e() + ")"
	case 9: // nothing that makes a negative zero: it has no sign here, so that none comes into JSON
		return "(" + e() + " " + p.pick("/ 2", "/ 7", "* 3", "* 0.5", "^ 2") + ")"
	case 10:
		return "(" + e() + " .. " + e() + ")"
	case 11:
		return "(" + p.pick("0", "1") + " - " + e() + ")"
	case 12:
		return "#" + p.pick("'abc'", "{1, 2}", "{}", "str("+e()+")")
	case 13:
		return p.name() + p.pick(".a", ".b", "[1]", "[2]", "['x y']", ".a.b")
	case 14:
		return p.table(d - 1)
	case 15, 16:
		return p.function(d - 1)
	case 17:
		return p.name() + "(" + e() + ")"
	case 18, 19:
		return p.stringCall(e)
	case 20:
		return p.tableCall(e)
	case 21:
		return "select(" + p.pick("1", "2", "-1", "'#'") + ", " + e() + ", " + e() + ")"
	case 22:
		if p.vararg {
			return p.pick("...", "(...)", "select('#', ...)", "({...})[2]")
		}
		return p.pick("type", "str", "tonumber") + "(" + e() + ")"
	case 23:
		return "(small(" + e() + ") % " + p.pick("3", "-3") + ")"
	}
	return p.pick("math.floor(", "math.abs(", "math.max(1, ", "math.min(2, ", "tonumber(", "rawget({1, a = 2}, ", "rawequal(1, ") + e() + ")"
}

func (p *programmer) table(d int) string {
	var parts []string
	if p.IntN(8) == 0 { // the compiler puts elements in fifty at a time
		parts = slices.Repeat([]string{"0"}, 46+p.IntN(5))
		for range p.IntN(5) {
			parts = append(parts, p.pick("(function() return 4, 5, 6 end)()", "[51] = 7", "[50] = 8", "k = 9", "nil", "[52] = 3"))
		}
	}
	for range p.IntN(4) {
		switch p.IntN(3) {
		case 0:
			parts = append(parts, p.expr(d))
		case 1:
			parts = append(parts, p.pick("a", "b", "c")+" = "+p.expr(d))
		default:
			parts = append(parts, "["+p.pick("1", "2", "'k'", "true", "10", "-1", "1.5")+"] = "+p.expr(d))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// function is a closure over what is there, with a body of its own.
func (p *programmer) function(d int) string {
	outer := *p
	inner := &programmer{Rand: p.Rand, depth: p.depth + 1, names: p.names, locals: append([]string{}, p.locals...)}
	params := p.pick("", "x", "x, y", "...", "x, ...")
	inner.vararg = strings.Contains(params, "...")
	for _, name := range strings.Split(params, ", ") {
		if name != "" && name != "..." {
			inner.locals = append(inner.locals, name)
		}
	}
	for range p.IntN(3) {
		inner.statement(d - 1)
	}
	inner.line("return %s", inner.exprs(d))
	p.names, p.depth = inner.names, outer.depth
	return "(function(" + params + ")\n" + inner.b.String() + strings.Repeat(" ", p.depth) + "end)"
}

func (p *programmer) exprs(d int) string {
	parts := []string{p.expr(d)}
	for range p.IntN(3) {
		parts = append(parts, p.expr(d-1))
	}
	return strings.Join(parts, ", ")
}

func (p *programmer) stringCall(e func() string) string {
	s := p.pick("'hello world'", "'a1b22c333'", "'  trim  '", "'key=value; k2=v2'", "str("+e()+")")
	pattern := p.pick("'%a+'", "'%d'", "'l+'", "'(%w+)=(%w+)'", "'^%s*(.-)%s*$'", "'[aeiou]'", "'.'", "'%s'", "'()b'", "'%f[%w]%w+'", "'o'", "'[^%w]'", "'%b=;'", "'(a*(.)%d)'", "'-'", "''")
	switch p.IntN(12) {
	case 0:
		return "string.upper(" + s + ")"
	case 1:
		return "string.rep(" + s + ", " + p.pick("0", "1", "3", "-1") + ")"
	case 2:
		return "string.sub(" + s + ", " + p.pick("1", "2", "-3", "0", "100", "-100") + ", " + p.pick("3", "-1", "-2", "0", "50") + ")"
	case 3:
		return "string.find(" + s + ", " + pattern + p.pick("", ", 3", ", -4", ", 1, true", ", 20") + ")"
	case 4:
		return "string.match(" + s + ", " + pattern + p.pick("", ", 2", ", -2") + ")"
	case 5, 6:
		return "string.gsub(" + s + ", " + pattern + ", " + p.pick("'<%0>'", "'%1'", "''", "{l = 'L', a = 1, k2 = true}", "function(a, b) return b or a and nil end", "function(x) return x and #x end", "'%%'") + p.pick("", ", 1", ", 0", ", 2") + ")"
	case 7:
		return "string.format(" + p.pick("'%d %s', 3, 'x'", "'%5.2f|', 2.5", "'%x %X %o', 255, 255, 8", "'%-5s|%5s|', 'ab', 'cd'", "'%q', 'a\"b\\n'", "'%c%c', 72, 105", "'%05d', 42", "'%g', 0.1", "'%s', str("+e()+")", "'%i%%', 7", "'%e', 12345.678", "'%.3s', 'abcdef'", "'%+d', 5") + ")"
	case 8:
		return "string.byte(" + s + ", " + p.pick("1", "2", "-1", "1, 3", "99") + ")"
	case 9:
		return "string.reverse(" + s + ")"
	case 10:
		return "(" + s + "):len()"
	}
	return "string.char(" + p.pick("", "65", "72, 105") + ")"
}

func (p *programmer) tableCall(e func() string) string {
	list := p.pick("{3, 1, 2}", "{'b', 'a'}", "{}", "{1, 2, 3, 4}", "{"+e()+", "+e()+"}")
	switch p.IntN(6) {
	case 0:
		return "table.concat(" + list + ", " + p.pick("','", "''", "' '") + p.pick("", ", 2", ", 1, 2") + ")"
	case 1:
		return "sorted(" + list + p.pick("", ", function(a, b) return a > b end") + ")"
	case 2:
		return "inserted(" + list + ", " + p.pick("", "1, ", "2, ") + "(" + e() + "))"
	case 3:
		return "removed(" + list + p.pick("", ", 1", ", 2") + ")"
	case 4:
		return "unpack(" + list + p.pick("", ", 2", ", 1, 2") + ")"
	}
	return "next(" + p.pick("{}", "{7}", "{a = 1}") + ")"
}

func (p *programmer) block(d int, end string) {
	locals := len(p.locals)
	p.depth++
	for range 1 + p.IntN(3) {
		p.statement(d - 1)
	}
	p.depth--
	p.locals = p.locals[:locals]
	p.line("%s", end)
}

// assign changes something that is there already: where the stock compiler of
// the interpreter went wrong.
func (p *programmer) assign(d int) {
	switch p.IntN(8) {
	case 5:
		if p.vararg {
			p.set(p.name(), p.pick("(...)", "...", "(...), "+p.name(), p.name()+", ..."))
			return
		}
		p.set(p.name(), p.pick("nil", strings.ReplaceAll("-(N ~= 0 and N or 1)", "N", p.name()), "#str("+p.name()+")", p.name()+"("+p.name()+")", "{"+p.name()+"}", p.name()+" == "+p.name()))
	case 6: // what is linked is the table that was there
		n := p.name()
		p.line("if type(%s) == 'table' then %s%s end", n, strings.ReplaceAll(p.pick("N.a, N = ", "N, N.a = ", "N.b, N.a = ", "N = N.a or "), "N", n), p.exprs(1))
	case 7:
		n := p.name()
		p.line("local %s = %s", n, p.pick(n, p.expr(d)))
	case 0:
		a, b := p.name(), p.name()
		if a == b { // which of the two wins, nobody says
			b = "g1"
			if a == b {
				b = "g2"
			}
		}
		p.set(a+", "+b, p.exprs(d))
	case 1:
		n := p.name()
		p.line("if type(%s) == 'table' then %s%s = %s end", n, n, p.pick(".a", "[1]", "['k']", "[2]", ".b"), p.expr(d))
	default:
		n := p.name()
		p.set(n, p.pick(p.expr(d), n+" and "+p.expr(d-1), p.expr(d-1)+" and "+n, "not "+n, n+" or "+p.expr(d), p.expr(d-1)+" and "+p.expr(d-1)+" or "+n,
			"str("+n+") .. "+p.expr(d-1), p.literal()+" .. "+n, "(type("+n+"))", "str("+n+"), type("+n+")"))
	}
}

// set changes locals, and keeps short what may have grown.
func (p *programmer) set(names, values string) {
	p.line("%s = %s", names, values)
	if strings.Contains(values, " .. ") || strings.Contains(values, "string.") || strings.Contains(values, "concat") {
		for name := range strings.SplitSeq(names, ", ") {
			p.line("%s = short(%s)", name, name)
		}
	}
}

func (p *programmer) local(d int) {
	n := p.fresh()
	p.line("local %s = %s", n, p.expr(d))
	p.locals = append(p.locals, n)
}

func (p *programmer) statement(d int) {
	if d <= 0 {
		p.assign(1)
		return
	}
	switch p.IntN(19) {
	case 18:
		n := p.name()
		p.line("if type(%s) == 'table' then function %s:m(x, ...) return %s end end", n, n, p.pick("self.a, x", "x, ...", n+"["+p.expr(1)+"]"))
		p.try("return %s:m(%s)", n, p.exprs(1))
	case 17:
		p.closures()
	case 16:
		p.coroutine(d)
	case 0, 1:
		p.local(d)
	case 2, 3, 4:
		p.assign(d)
	case 5:
		p.line("if %s then", p.expr(d))
		p.block(d, p.pick("elseif "+p.expr(d-1)+" then", "else"))
		p.block(d, "end")
	case 6, 7, 8:
		p.loop(d)
	case 9:
		p.line("try(%s, %s)", p.function(d), p.exprs(1))
	case 10:
		p.line("local function f%d(x, ...)", p.names)
		name := fmt.Sprintf("f%d", p.names)
		p.names++
		p.line(" if type(x) ~= 'number' or x <= 0 or x > 6 then return %s end", p.expr(1))
		p.line(" return %s", fmt.Sprintf(p.pick("x + %s(x - 1, ...)", "x * %s(x - 1)", "x and %s(x - 1, ...)", "x or %s(x - 1)", "{x, %s(x - 1, ...)}"), name))
		p.line("end")
		p.locals = append(p.locals, name)
	case 11:
		p.metatable(d)
	case 12:
		if p.loops > 0 && p.IntN(2) == 0 {
			p.line("if %s then break end", p.expr(1))
			return
		}
		p.line("out(%s)", p.exprs(1))
	case 13:
		p.line("do")
		p.block(d, "end")
	default:
		p.try("out(%s)", p.exprs(d))
	}
}

// try writes a statement that may fail.
func (p *programmer) try(format string, args ...any) {
	params, given := "", ""
	if p.vararg {
		params, given = "...", ", ..."
	}
	p.line("try(function(%s) %s end%s)", params, fmt.Sprintf(format, args...), given)
}

// coroutine yields from the coroutine's own function alone: from within pcall and
// the like stock Lua can't.
func (p *programmer) coroutine(d int) {
	co, locals, loops, vararg := p.fresh(), len(p.locals), p.loops, p.vararg
	x, y := p.fresh(), p.fresh()
	p.line("local %s = coroutine.%s(function(%s, ...)", co, p.pick("create", "wrap"), x)
	p.locals, p.loops, p.vararg = append(p.locals, x), 0, true
	p.line(" local %s = coroutine.yield(%s)", y, p.exprs(1))
	p.locals = append(p.locals, y)
	if p.IntN(2) == 0 {
		p.line(" for _ = 1, %s do %s = coroutine.yield(%s) end", p.pick("0", "1", "3"), p.pick(x, y), p.exprs(1))
	}
	p.depth++
	for range p.IntN(3) {
		p.statement(d - 1)
	}
	p.depth--
	p.line(" return %s", p.exprs(1))
	p.line("end)")
	p.locals, p.loops, p.vararg = p.locals[:locals], loops, vararg
	for range 2 + p.IntN(3) {
		p.line("resume(%s, %s)", co, p.exprs(1))
	}
}

// closures are made in a loop, each with variables of its own.
func (p *programmer) closures() {
	all, i, j := p.fresh(), p.fresh(), p.fresh()
	end := "end"
	p.line("local %s = {}", all)
	switch p.IntN(4) {
	case 0:
		p.line("for %s = 1, 3 do", i)
	case 1:
		p.line("for %s in ipairs({4, 5, 6}) do", i)
	case 2:
		p.line("local %s = 0", i)
		p.line("while %s < 3 do", i)
		p.line(" %s = %s + 1", i, i)
	default:
		p.line("local %s = 0", i)
		p.line("repeat")
		p.line(" %s = %s + 1", i, i)
		end = "until " + i + " >= 3 or " + j
	}
	p.line(" local %s = %s", j, p.expr(1))
	p.line(" %s[%s] = function(x) %s = x or %s; return %s, %s, %s end", all, i, j, j, i, j, p.name())
	if p.IntN(2) == 0 {
		p.line(" if %s == 2 then break end", i)
	}
	p.line("%s", end)
	p.line("for _, f in ipairs(%s) do out(f()) out(f(%s)) out(f()) end", all, p.expr(1))
}

func (p *programmer) loop(d int) {
	i := p.fresh()
	locals := len(p.locals)
	p.loops++
	switch p.IntN(6) {
	case 0:
		p.line("for %s = %s do", i, p.pick("1, 3", "3, 1, -1", "1, 0", "0, 1, 0.5", "2, 5, 2"))
		p.locals = append(p.locals, i)
		p.block(d, "end")
	case 1:
		p.line("local %s = 0", i)
		p.line("while %s < 3 and %s do", i, p.pick("true", p.expr(1), "not nil", "("+p.expr(1)+" or true)"))
		p.line(" %s = %s + 1", i, i)
		p.block(d, "end")
	case 2:
		p.line("local %s = 0", i)
		p.line("repeat")
		p.line(" %s = %s + 1", i, i)
		p.block(d, "until "+i+" >= 3 or "+p.pick("false", p.expr(1)))
	case 3:
		v := p.fresh()
		p.line("for %s, %s in ipairs(%s) do", i, v, p.pick("{4, 5}", "{'a', 'b', nil, 'c'}", "{{1}, {2}}"))
		p.locals = append(p.locals, i, v)
		p.block(d, "end")
	case 4:
		p.line("for %s in %s do", p.pick(i, i+", "+p.fresh()), p.pick("next, {"+p.expr(1)+", 2}", "next, {4, 5}, 1", "next, sorted({2, 1})", "next, {x = "+p.expr(1)+"}", "pairs({6})", "given(next), {"+p.expr(1)+"}", "given(pairs){7, "+p.expr(1)+"}", "given(library):each()", "given(given(library)).each(library, {"+p.expr(1)+"})", "given(library).next, given({8}), nil", "given(given)(next, {"+p.expr(1)+"})", p.expr(1)+" and given(ipairs)({9})", "(function(s, c) if not c then return 1, s end end)"))
		p.locals = append(p.locals, i)
		p.block(d, "end")
	default:
		v := p.fresh()
		p.line("for %s, %s in string.gmatch('k1=v1, k2=v2', %s) do", i, v, p.pick("'(%w+)=(%w+)'", "'%a'", "'()(%d)'"))
		p.locals = append(p.locals, i, v)
		p.block(d, "end")
	}
	p.loops--
	p.locals = p.locals[:locals]
}

func (p *programmer) metatable(d int) {
	n := p.fresh()
	var entries []string
	for _, event := range []string{"__add", "__sub", "__concat", "__eq", "__lt", "__le", "__call", "__unm", "__index", "__newindex", "__tostring"} {
		if p.IntN(3) > 0 {
			continue
		}
		switch event {
		case "__index":
			entries = append(entries, p.pick("__index = {a = 'inherited'}", "__index = function(t, k) return k end"))
		case "__newindex":
			entries = append(entries, "__newindex = function(t, k, v) rawset(t, k, "+p.pick("v", "{v}", "k")+") end")
		case "__unm": // that its operand comes twice is for nobody to rely on
			entries = append(entries, "__unm = function(a) return "+p.pick("1", "nil", "type(a)", "a")+" end")
		case "__tostring":
			entries = append(entries, "__tostring = function() return 'object' end")
		default:
			entries = append(entries, event+" = function(a, b) return "+p.pick("1", "true", "false", "nil", "type(a)", "type(b)")+" end")
		}
	}
	p.line("local %s = setmetatable(%s, {%s})", n, p.pick("{}", "{a = 1}", "{1, 2}"), strings.Join(entries, ", "))
	p.locals = append(p.locals, n)
}

// program is one random program, the body of a function.
func program(seed uint64) string {
	p := &programmer{Rand: rand.New(rand.NewPCG(seed, 5))}
	p.line("local g1, g2, g3 = 1, 'two', {a = 3, 4}")
	for range 3 {
		p.local(1)
	}
	for range 4 + p.IntN(8) {
		p.statement(3)
	}
	p.line("out(%s)", strings.Join(p.locals[:min(len(p.locals), 20)], ", "))
	p.line("out(g1, g2, g3)")
	return p.b.String()
}

// batch runs several programs after one another, each within pcall.
func batch(bodies []string) string {
	var b strings.Builder
	b.WriteString(programPrelude)
	for i, body := range bodies {
		fmt.Fprintf(&b, "lines[#lines + 1] = 'program %d'\ntry(function()\n%send)\n", i, body)
	}
	return b.String()
}

// TestPrograms_LikeStockLua runs random programs here and by a stock lua5.1, and
// compares what they print.
func TestPrograms_LikeStockLua(t *testing.T) {
	stock, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Skip("skipped: there is no lua5.1 here to compare with")
	}
	const size = 25
	worst, differ, lost := "", 0, 0 // the shortest program of those that differ says most
	for n := 0; n < *programs; n += size {
		bodies := make([]string, size)
		for i := range bodies {
			bodies[i] = program(*firstSeed + uint64(n+i))
		}
		source := batch(bodies)
		file := filepath.Join(t.TempDir(), "programs.lua")
		if err := os.WriteFile(file, []byte(source+"\nprint(table.concat(lines, '\\n'))\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := exec.Command(stock, file).CombinedOutput()
		if err != nil && len(want) == 0 { // it was ended, of its memory, say: such programs are rare, and no answer
			if lost++; lost*size > 50+*programs/100 {
				t.Fatalf("the stock interpreter ends without an answer again and again: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: the stock interpreter refuses: %s\n%s", *firstSeed+uint64(n), want, numbered(source))
		}
		wants := strings.Split(strings.TrimSuffix(string(want), "\n"), "program ")
		printed := runProgram(t, source+"\nreturn table.concat(lines, '\\n')\n")
		gots := strings.Split(printed, "program ")
		if len(gots) < len(wants) {
			i := max(len(gots)-2, 0) // nothing is printed before the end: find the program that ends it
			for k, body := range bodies {
				if alone := runProgram(t, batch([]string{body})+"\nreturn table.concat(lines, '\\n')\n"); !strings.HasPrefix(alone, "program ") {
					i, printed = k, alone
					break
				}
			}
			t.Errorf("seed %d: it ends with %s\n%s", *firstSeed+uint64(n+i), printed, bodies[i])
			continue
		}
		for i, body := range bodies {
			if diff := cmp.Diff(strings.Split(part(wants, i+1), "\n"), strings.Split(part(gots, i+1), "\n")); diff != "" {
				differ++
				if report := fmt.Sprintf("seed %d\n%s\n%s", *firstSeed+uint64(n+i), body, diff); worst == "" || len(report) < len(worst) {
					worst = report
				}
			}
		}
	}
	if differ > 0 {
		t.Errorf("%d programs print something else (- stock lua, + here), the shortest:\n%s", differ, worst)
	}
}

func part(parts []string, i int) string {
	if i < len(parts) {
		return strings.TrimSpace(parts[i])
	}
	return ""
}

func numbered(source string) string {
	lines := strings.Split(source, "\n")
	for i := range lines {
		lines[i] = fmt.Sprintf("%d %s", i+1, lines[i])
	}
	return strings.Join(lines, "\n")
}

func runProgram(t *testing.T, source string) string {
	t.Helper()
	return runProgramAs(t, "programs.lua", source)
}

func runProgramAs(t *testing.T, file, source string) string {
	t.Helper()
	sc, err := sandbox.NewScript(file, []byte(source), 1<<20)
	if err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	s := bareSession()
	s.begin(context.Background(), 10*time.Minute, sc, nil)
	defer s.Run.Stop()
	v, err := s.RunFile(sc)
	if err != nil {
		return err.Error()
	}
	return v.String()
}
