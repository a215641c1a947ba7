package host

import (
	"testing"

	"obelus/engine/plan"
)

// stockPrelude gathers lines. position is the place in front of a message, for the messages
// themselves are in other words here.
const stockPrelude = `
local lines = {}
local function out(...)
  local parts = {}
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    parts[i] = type(v) == "number" and string.format("%.14g", v) or type(v) == "table" and "table" or tostring(v)
  end
  lines[#lines + 1] = table.concat(parts, " ")
end
local function position(ok, e) return ok, type(e) == "string" and (e:match("^programs%.lua:%d+:") or "none") or e end
`

const stockEnd = "\nreturn table.concat(lines, '\\n')"

func TestFor_BoundsAsStockLua(t *testing.T) {
	compareWithStock(t, stockPrelude+`
local bounds = {1, "1", "3", " 0x3 ", "1e0", 3, -1, "-1", 0.5, "a", "", true, {}, 2}
for _, a in ipairs(bounds) do for _, b in ipairs(bounds) do for _, c in ipairs{1, "1", "2", -1, "x", false} do
  local n, last = 0, "none"
  local ok = pcall(function() for i = a, b, c do n = n + 1 last = i if n > 20 then break end end end)
  out(ok, n, last, type(last))
end end end
for i = "2", 3 do out(i) end
for i = (function() return "1", 2 end)(), (function() return "2", 9 end)() do out(i) end
local function many() return 1, 2, 3 end
for i = many(), many() + 1, many() do out(i) end
for i = 3, "1", -1 do out(i) end
out(position(pcall(function()
  for i = 1,
    nil do end
end)))`+stockEnd)
}

func TestMetamethod_CallableObjectsAsStockLua(t *testing.T) {
	compareWithStock(t, stockPrelude+`
local function callable(name)
  return setmetatable({}, { __call = function(self, a, b, ...)
    out(name, type(self), type(a) == "number" and a or type(a), type(b) == "number" and b or type(b), select("#", ...))
    return name
  end })
end
local events = {"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__concat", "__eq", "__lt", "__le", "__tostring", "__len"}
local function try(x, y)
  for _, pair in ipairs{{x, 1}, {1, x}, {"2", x}, {x, "2"}, {x, y}, {x, x}} do
    local a, b = pair[1], pair[2]
    for _, f in ipairs{
      function() return a + b end, function() return a - b end, function() return a * b end, function() return a / b end,
      function() return a % b end, function() return a ^ b end, function() return a .. b end, function() return a == b end,
      function() return a < b end, function() return a <= b end, function() return a > b end, function() return a ~= b end,
    } do out(position(pcall(function() return (f()) end))) end
  end
  out(position(pcall(function() return -x end)))
  out((tostring(x):gsub("0x%x+", "")))
end
local at_once, later, assigned, functions = {}, {}, {}, {}
for _, e in ipairs(events) do at_once[e] = callable(e) end
for _, e in ipairs(events) do functions[e] = function(...) out(e, select("#", ...), rawequal(..., (select(2, ...)))) return e end end
local x, y = setmetatable({}, at_once), setmetatable({}, at_once)
try(x, y)
try(setmetatable({}, functions), setmetatable({}, functions))
local z, w = setmetatable({}, assigned), setmetatable({}, assigned)
assigned.__add, assigned.__lt = callable("add"), callable("lt")
assigned.__sub = callable("sub") assigned.__unm = callable("unm") assigned.__eq = callable("eq")
local several = {}
several.__add, several.b = (function() return 1, 2 end)()
several.c, several.__sub = 3, (function() return 4, 5 end)()
out(several.__add, several.b, several.c, several.__sub)
assigned.__mul = "no function" assigned["__le"] = callable("le")
try(z, w)
-- these are indexed and not called, or not called at all
local indexed = setmetatable({there = 1}, { __call = function() return "called" end })
local by = setmetatable({}, { __index = indexed, __newindex = indexed, __call = indexed })
out(by.there, by.gone, (pcall(function() by.new = 2 end)), rawget(by, "new"), indexed.new, (pcall(by)))
-- a minus is one, whatever its operand
for _, v in ipairs{1, -1, "2", "-0x10", 1e300, true} do out(position(pcall(function() return -v end))) end
out(- - - -5, -2 ^ 2, 2 - -3, -"5" + 1, not -1)
local unm = setmetatable({}, { __unm = function(a, b) return rawequal(a, b), "second" end, __sub = function() return "sub" end })
out(-unm, 0 - unm, 5 - unm, unm - 5, "7" - unm)
local two = setmetatable({}, { __add = setmetatable({}, { __call = function() error("here", 2) end }) })
out(position(pcall(function()
  local _ = 5

  return two + 1
end)))`+stockEnd)
}

func TestErrors_PositionsAsStockLua(t *testing.T) {
	compareWithStock(t, stockPrelude+`
out(position(pcall(error, "m")))
for level = 0, 5 do
  out(level, position(pcall(error, "m", level)))
  out(level, position(pcall(function() error("m", level) end)))
  local function inner() error("m", level) end
  local function outer()
    inner()
  end
  out(level, position(pcall(outer)))
  out(level, position(pcall(pcall, error, "m", level)))
  out(level, position(select(2, pcall(function() return pcall(outer) end))))
  out(level, position(xpcall(outer, function(e) return e end)))
  out(level, position(coroutine.resume(coroutine.create(outer))))
  out(level, position(coroutine.resume(coroutine.create(function() local _, e = pcall(outer) error(e, 0) end))))
end
out(position(pcall(function() assert(false) end)))
out(position(pcall(function() assert(nil, nil) end)))
out(position(pcall(function() assert(false, "m") end)))
out(position(pcall(function() assert(false, 5) end)))
out(position(pcall(assert, false, "m")))
out(pcall(error, 5, 2))
out(pcall(function() error(5) end))
out(pcall(function() error(nil) end))
out(pcall(function() error(true) end))`+stockEnd)
}

func TestNext_KeysAsStockLua(t *testing.T) {
	compareWithStock(t, stockPrelude+`
local function t() return {1, 2, a = 3} end
for _, key in ipairs{"nokey", true, 1, 2, "a"} do out(key, (pcall(next, t(), key))) end
out((pcall(next, {}, "nokey")), (pcall(next, {a = 1}, {})), (pcall(next, {a = 1}, "b")), (pcall(next, {a = 1}, "b")))
local left, n = {}, 0
for i = 1, 20 do left["k" .. i] = i end
for k in pairs(left) do
  left[k] = nil n = n + 1
  for _ in pairs{x = 1, y = 2} do end
end
out(n, (next(left)))
local again = {a = 1, b = 2}
again.a = nil
out((pcall(next, again, "c")), (pcall(next, again, "b")))`+stockEnd)
}

func TestEscapes_AsStockLua(t *testing.T) {
	compareWithStock(t, stockPrelude+`
for _, text in ipairs{
  [["\255"]], [["\256"]], [["\300"]], [['a\999']], [["\\300"]], [["\0123"]], [["\25x"]], [[ "a" --"\300"
    ]], "[[\\300]]", "--[[ '\\300' ]] 1", [["'\300'"]], '"\\\n\\300"', [["\\\300"]],
} do
  local f, e = loadstring("return " .. text)
  out(text, f ~= nil, f and f(), e and e:match(":(%d+):"))
end`+stockEnd)
}

func TestArithmetic_IntegersThatAreText(t *testing.T) {
	for body, want := range map[string]string{
		`call.big + 1`:                   `a: arithmetic would round the integer 12345678901234567890, which is text since it is beyond 2^53 (tonumber rounds it)`,
		`1 - call.big`:                   `a: arithmetic would round the integer 12345678901234567890, which is text since it is beyond 2^53 (tonumber rounds it)`,
		`-call.negative`:                 `a: arithmetic would round the integer -9007199254740993, which is text since it is beyond 2^53 (tonumber rounds it)`,
		`tonumber(call.big) + 1`:         `12345678901234567168`,
		`call.exact + 0`:                 `9007199254740992`,
		`"9007199254740992" + 0`:         `9007199254740992`,
		`"1e30" + 0`:                     `1e+30`,
		`call.big`:                       `"12345678901234567890"`,
		`2^53 + 2`:                       `9007199254740994`,
		`-(2^53 + 2)`:                    `-9007199254740994`,
		`json.encode{ 2^53 + 2, -2^63 }`: `"[9007199254740994,-9223372036854775808]"`,
		`2^69`:                           `590295810358705651712`,
		`2^70`:                           `1.1805916207174113e+21`,
		`json.decode(json.encode{ 2^53 - 2, 1e21 })`: `[9007199254740990,1e+21]`,
	} {
		got, err := runA(one(t, "return "+body), plan.Invocation{Call: object(t, `{"big":12345678901234567890,"negative":-9007199254740993,"exact":9007199254740992}`)})
		if err != nil {
			got = "a: " + err.(*ScriptError).Message
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
}

func TestArguments_FunctionsThatPcallCalled(t *testing.T) {
	for source, want := range map[string]string{
		`return select(2, pcall(string.rep))`:                            `bad argument #1 to string.rep: string expected, got nil`,
		`return select(2, pcall(ipairs, 5))`:                             `bad argument #1 to ipairs: table expected, got number`,
		`return select(2, pcall(require("str").trim))`:                   `bad argument #1 to str.trim: string expected, got nil`,
		`return select(2, xpcall(string.rep, function(e) return e end))`: `bad argument #1 to string.rep: string expected, got nil`,
		`return select(2, pcall(pcall))`:                                 `bad argument #1 to pcall: value expected`,
		`return select(2, pcall(table.sort, {"a", "b"}, string.rep))`:    `bad value: number expected, got string`,
		"return select(2, pcall(function() return\nstring.rep() end))":   `programs.lua:2: bad argument #1 to rep: string expected, got nil`,
	} {
		if got := runProgram(t, source); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", source, got, want)
		}
	}
}

func TestFaults_NameTheOperand(t *testing.T) {
	for body, want := range map[string]string{
		`local t = {} return -t.x`:                   `attempt to perform arithmetic on t.x (a nil value)`,
		`local t = {} return -t`:                     `attempt to perform arithmetic on t (a table value)`,
		`local t = {} return 1 + -t.x`:               `attempt to perform arithmetic on t.x (a nil value)`,
		`local t = {} return #t.x`:                   `attempt to get the length of t.x (a nil value)`,
		`local t = {} return #t.x .. #t.y`:           `attempt to get the length of a nil value`,
		`local t = {} for k in pairs(t.x) do end`:    `bad argument #1 to pairs: table expected, got t.x (a nil value)`,
		`local t = {} for k in ipairs(t.x) do end`:   `bad argument #1 to ipairs: table expected, got t.x (a nil value)`,
		`local t = {} return math.floor(t.x)`:        `bad argument #1 to math.floor: number expected, got t.x (a nil value)`,
		`local t = {} return math.floor(t.x or nil)`: `bad argument #1 to math.floor: number expected, got nil`,
		`local t = {} for i = t.a, t.b do end`:       `the init of a for loop must be a number, not t.a (a nil value)`,
		`local t = {} for i = 1, t.b do end`:         `the limit of a for loop must be a number, not t.b (a nil value)`,
		`local t = {} for i = 1, 2, t.c do end`:      `the step of a for loop must be a number, not t.c (a nil value)`,
		`local s = "three" for i = 1, s do end`:      `the limit of a for loop must be a number, not s (a string value)`,
		`local t = {} for i = t.x + 1, 2 do end`:     `attempt to perform arithmetic on t.x (a nil value)`,
	} {
		_, err := runA(one(t, body), plan.Invocation{})
		if one, ok := err.(*ScriptError); !ok || one.Message != want {
			t.Errorf("%s\ngot  %v\nwant %s", body, err, want)
		}
	}
}

// TestMinus_ComputedZero holds that a zero with a sign that a script computes is a number as
// any other beside objects with operators.
func TestMinus_ComputedZero(t *testing.T) {
	got, err := runA(one(t, `
		local v = setmetatable({}, { __add = function() return "add" end, __sub = function() return "sub" end, __unm = function() return "unm" end })
		local zero = 0 * -1
		local out = { zero + v, v + zero, zero - v, v - zero, -v, tostring(1 / zero), tostring(1 / -0), tostring(1 / 0) }
		for _, bound in ipairs({ { v, 3 }, { 1, v } }) do
			local ok, err = pcall(function() for i = bound[1], bound[2] do end end)
			out[#out + 1] = ok and "runs" or err:match("must be a number") or err
		end
		local n = 0
		for i = "1", "3", "1" do n = n + i end
		return { out, n, -"7" }`), plan.Invocation{})
	const want = `[["add","add","sub","sub","unm","-inf","-inf","inf","must be a number","must be a number"],6,-7]`
	if err != nil || got != want {
		t.Errorf("got  %s %v\nwant %s", got, err, want)
	}
}
