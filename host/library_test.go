package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// libraryPrelude calls functions with every combination of some values. Left out is what
// the two may do differently, and do: the text of errors, and of numbers from 1e15 on; a
// number that is too large for an index, or is none; a zero byte, or what would follow a
// last %, where the stock library stops reading or does not; keys that a table has not.
const libraryPrelude = `
local values = {
  {"nil"}, {"true", true}, {"0", 0}, {"1", 1}, {"2", 2}, {"-1", -1}, {"3.7", 3.7}, {"-2.5", -2.5}, {"16", 16},
}
for _, text in ipairs{
  "", "a", "hello world", "10", "0x1F", " 5 ", "1e1", "%d", "%5.2f|%-5s", "%q", "%", "[a", "(l+)", "(", ")", "%b", "%bho", "%f", "%f[%w]",
  "%1", "()l", "^h", ".-", "o$", "l*", "[^%s]+", "%%x", "%c%x%g%o", "%5", "%y", "{}", "[a-m]", "%a+", "(.)(.)%2%1", "[%]x]", "[]]", "[^]]",
} do values[#values + 1] = {"'" .. text .. "'", text} end
local function show(v, depth)
  local t = type(v)
  if t == "number" then
    if v ~= v then return "nan" end
    if v == 0 then v = 0 end
    return string.format("%.12g", v)
  elseif t == "string" then
    return "'" .. v:gsub("[^ -~]", function(c) return "\\" .. c:byte() end) .. "'"
  elseif t ~= "table" then
    return t == "function" and t or tostring(v)
  end
  local keys, parts = {}, {}
  for k in next, v do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) if type(a) ~= type(b) then return type(a) < type(b) end return a < b end)
  for i, k in ipairs(keys) do parts[i] = show(k) .. "=" .. show(v[k]) end
  return "{" .. table.concat(parts, ",") .. "}"
end
local lines = {}
local function shown(ok, ...)
  if not ok then return "raised" end
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = show((select(i, ...))) end
  return table.concat(parts, " ")
end
local function try(text, f, ...) lines[#lines + 1] = text .. " " .. shown(pcall(f, ...)) end
local function each(name, f, n)
  try(name .. "()", f)
  for _, a in ipairs(values) do
    try(name .. "(" .. a[1] .. ")", f, a[2])
    for i = 1, n > 1 and #values or 0 do
      local b = values[i]
      try(name .. "(" .. a[1] .. ", " .. b[1] .. ")", f, a[2], b[2])
      for k = 1, n > 2 and #values or 0, 5 do
        local c = values[(i + k) % #values + 1]
        try(name .. "(" .. a[1] .. ", " .. b[1] .. ", " .. c[1] .. ")", f, a[2], b[2], c[2])
      end
    end
  end
end
local function text(v) -- which %s has of all values here
  if v == nil or v == true then return tostring(v) end
  return v
end
`

// TestLibrary_LikeStockLua calls the functions of Lua's own library here and in a stock
// lua5.1, and compares what they give.
func TestLibrary_LikeStockLua(t *testing.T) {
	stock, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Skip("skipped: there is no lua5.1 here to compare with")
	}
	for name, calls := range map[string]string{
		"strings": `
			for _, name in ipairs{"len", "lower", "upper", "reverse"} do each(name, string[name], 1) end
			each("char", string.char, 2) each("byte", string.byte, 3) each("sub", string.sub, 3)
			each("rep", function(s, n) return string.rep(s, tonumber(n) or n) end, 2)`,
		"patterns": `
			each("find", string.find, 3) each("match", string.match, 3)
			each("plain", function(s, p) return string.find(s, p, 1, true) end, 2)
			each("gmatch", function(s, p) local all = {} for a, b in string.gmatch(s, p) do all[#all + 1] = {a, b} end return unpack(all) end, 2)`,
		"gsub": `
			each("text", function(s, p, with) return string.gsub(s, p, with ~= "%" and with) end, 3)
			each("table", function(s, p) return string.gsub(s, p, {l = "L", h = false, o = 5}) end, 2)
			each("function", function(s, p, n) return string.gsub(s, p, function(a, b) return n and a .. (b or "<") end, tonumber(n)) end, 3)`,
		"format": `
			each("format", function(f, a, b) return string.format(f, text(a), text(b)) end, 3)
			for _, d in ipairs{"d", "i", "u", "o", "x", "X", "e", "E", "f", "g", "G", "c", "s", "q", "+d", " d", "05d", "-5d", "#x", "#o", ".3d", "5.1f", ".10f", "+.2e", ".2s", "-8s", "08.2f", "", ".", "123d", "-+ #0d", "#.0f", "#.0e", "#.1g", "#G"} do
				each(d, function(v) return string.format("%" .. d .. "|", (d ~= "c" or v ~= 0) and text(v) or 65) end, 1)
			end`,
		"numbers": `
			for _, name in ipairs{"abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "deg", "exp", "floor", "frexp", "log", "log10", "modf", "rad", "sin", "sinh", "sqrt", "tan", "tanh"} do
				each(name, math[name], 1)
			end
			for _, name in ipairs{"atan2", "fmod", "ldexp", "pow", "max", "min"} do each(name, math[name], 2) end
			each("tonumber", function(v, base) if tonumber(v) and tonumber(v) < 0 then base = nil end return tonumber(v, base) end, 2)`,
		"operators": `
			each("+", function(a, b) return a + b end, 2) each("-", function(a, b) return a - b end, 2) each("*", function(a, b) return a * b end, 2)
			each("/", function(a, b) return a / b end, 2) each("^", function(a, b) return a ^ b end, 2) each("%", function(a, b) return a % b end, 2)
			each("<", function(a, b) return a < b end, 2) each("<=", function(a, b) return a <= b end, 2) each("==", function(a, b) return a == b end, 2)
			each("..", function(a, b) return a .. b end, 2) each("neg", function(a) return -a end, 1) each("#", function(a) return #a end, 1)`,
		"tables": `
			for i, make in ipairs{function() return {} end, function() return {1, 2, 3} end, function() return {"b", "a", "c"} end, function() return {2, "x"} end, function() return {a = 1} end} do
				each("remove" .. i, function(...) local t = make() return table.remove(t, ...), t end, 1)
				each("concat" .. i, function(...) return table.concat(make(), ...) end, 3)
				each("insert" .. i, function(at, v) local t = make() if type(at) == "number" and at >= 1 and at <= #t + 1 then table.insert(t, at, v) else table.insert(t, text(at)) end return t end, 2)
				each("sort" .. i, function() local t = make() table.sort(t) return t end, 0)
				each("sorted" .. i, function() local t = make() table.sort(t, function(a, b) return tostring(a) > tostring(b) end) return t end, 0)
				each("unpack" .. i, function(from, to) return unpack(make(), from, to) end, 2)
				each("next" .. i, function(k) local t = make() if t[k or 1] ~= nil then return next(t, k) end end, 1)
				each("maxn" .. i, function() return table.maxn(make()) end, 0)
			end
			each("select", select, 3) each("type", type, 1) each("tostring", tostring, 1)`,
		"dates": `
			for _, layout in ipairs{"%Y-%m-%d %H:%M:%S", "%a %A %b %B %c", "%p %j %U %w %W %x %X %y %%", "*t", "%d/%m", "%I"} do
				for day = 0, 20000, 37 do try(layout .. day, os.date, "!" .. layout, day * 86400 + day * 31) end
			end
			for year = 1970, 2037, 7 do for month = -3, 15, 3 do for day = -5, 40, 9 do
				try("time", os.time, {year = year, month = month, day = day, hour = day, min = month * 30, sec = -day})
				try("noon", os.time, {year = year, month = month, day = day})
				try("text", os.time, {year = tostring(year), month = tostring(month), day = " 7 ", hour = "0x1"})
			end end end`,
	} {
		t.Run(name, func(t *testing.T) {
			source := libraryPrelude + calls
			file := filepath.Join(t.TempDir(), "library.lua")
			if err := os.WriteFile(file, []byte(source+"\nprint(table.concat(lines, '\\n'))\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := exec.Command(stock, file)
			c.Env = append(os.Environ(), "TZ=UTC")
			printed, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("the stock interpreter refuses: %s", printed)
			}
			want := strings.Split(strings.TrimSuffix(string(printed), "\n"), "\n")
			got := strings.Split(runProgram(t, source+"\nreturn table.concat(lines, '\\n')\n"), "\n")
			if len(want) < 50 || len(got) != len(want) {
				t.Fatalf("%d lines, not %d: %s", len(got), len(want), got[len(got)-1])
			}
			differ := 0
			for i := range want {
				if got[i] != want[i] {
					if differ++; differ <= 20 {
						t.Errorf("stock lua: %s\n     here: %s", want[i], got[i])
					}
				}
			}
			t.Logf("%d of %d differ", differ, len(want))
		})
	}
}
