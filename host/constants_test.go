package host

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/luac"
	"obelus/host/internal/sandbox"
)

// constantShapes are chunks with about n different constants in one function. Each returns
// a text that is made of all of them.
var constantShapes = map[string]func(n int) string{
	"strings": func(n int) string {
		return "local t = {" + repeated(n, `"s%d", `) + "}\nreturn table.concat(t, ' ')"
	},
	"pairs": func(n int) string {
		return "local t, all = {" + repeated(n/2, `k%d = "v%[1]d", `) + "}, {}\n" +
			fmt.Sprintf("for i = 0, %d do all[i + 1] = t['k' .. i] end return table.concat(all, ' ')", n/2-1)
	},
	"assignments": func(n int) string {
		return "local x, all = {}, {}\n" + repeated(n/2, "x.a%d = \"v%[1]d\"\n") +
			fmt.Sprintf("for i = 0, %d do all[i + 1] = x['a' .. i] end return table.concat(all, ' ')", n/2-1)
	},
	"numbers": func(n int) string {
		return "local t = {" + repeated(n/2, "%d.5, -%[1]d.25, ") + "}\nreturn table.concat(t, ' ')"
	},
	"computed numbers": func(n int) string {
		return "local x = 0\n" + repeated(n, "x = x + %d.5 * 3\n") + "return tostring(x)"
	},
	"nested": func(n int) string {
		return "local t, all = {" + repeated(n/4, `{ id = %d, name = "n%[1]d", at = { %[1]d.25, -%[1]d.75 } }, `) + "}, {}\n" +
			"for i, e in ipairs(t) do all[i] = e.id .. e.name .. e.at[1] .. e.at[2] end return table.concat(all, ' ')"
	},
	"arguments": func(n int) string {
		return "local all = {}\nlocal function f(a, b) all[#all + 1] = a .. b end\n" + repeated(n/2, "f(\"c%d\", %[1]d)\n") + "return table.concat(all, ' ')"
	},
	"conditions": func(n int) string {
		return "local function f(v)\n" + repeated(n/2, "if v == 'k%d' then return 'r%[1]d' end\n") + "end\n" +
			fmt.Sprintf("return f('k0') .. f('k%d') .. tostring((f('no')))", n/2-1)
	},
	"globals": func(n int) string {
		return repeated(n/2, "g%d = %[1]d\n") + "local sum = 0\n" + repeated(n/2, "sum = sum + g%d\n") + "return tostring(sum)"
	},
	"globals of an environment": func(n int) string { // which differs from the file's; and a local of the same name
		return repeated(n/2, "g%d = %[1]d\n") + "local function f() g0 = g1; " + repeated(n/2, "g%d = g%[1]d + 1\n") + "return g0 + g" + fmt.Sprint(n/2-1) + " end\n" +
			"local env = setmetatable({}, { __index = function(_, k) return #k end })\nsetfenv(f, env)\n" +
			"local function last(g" + fmt.Sprint(n/2-1) + ") return g" + fmt.Sprint(n/2-1) + " end\n" +
			"return f() .. ' ' .. env.g7 .. ' ' .. g7 .. ' ' .. last('argument')"
	},
	"functions": func(n int) string {
		return repeated(n/3, "function f%d() return 'f%[1]d' end\n") + "local all = {}\n" + repeated(n/3, "all[#all + 1] = f%d()\n") + "return table.concat(all, ' ')"
	},
	"methods": func(n int) string {
		return "local t, all = setmetatable({}, { __index = function(t, k) return function(self, v) return k .. v end end }), {}\n" +
			repeated(n/2, "all[#all + 1] = t:m%d('x') .. t.f%[1]d(t, 'y')\n") + "return table.concat(all, ' ')"
	},
	"method definitions": func(n int) string {
		return "local t, all = { sep = '-' }, {}\n" + repeated(n/2, "function t:m%d(...) return 'm%[1]d' .. self.sep .. select('#', ...) end\n") +
			fmt.Sprintf("for i = 0, %d do all[i + 1] = t['m' .. i](t, 1, 2) end return table.concat(all, ' ')", n/2-1)
	},
	"functions within": func(n int) string {
		return "local t = {" + repeated(n/2, `function(x) return x.k%d == %[1]d end, "f%[1]d", `) + "}\n" +
			fmt.Sprintf("return t[2] .. t[%d] .. tostring(t[%d]{k%d = %[3]d})", n/2*2, n/2*2-1, n/2-1)
	},
}

func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestConstants_ManyAsStockLua(t *testing.T) {
	for name, shape := range constantShapes {
		t.Run(name, func(t *testing.T) { compareWithStock(t, shape(3000)) })
	}
}

// TestConstants_FewOfManyLiterals is about literals that become no constants, so that the
// compiler sees fewer of them than the pool has left to it.
func TestConstants_FewOfManyLiterals(t *testing.T) {
	compareWithStock(t, repeated(600, "if 's%d' then end\n")+"local t = {"+repeated(600, "'a%d', ")+"}\nt.a599 = t[600]\nreturn t[1] .. t.a599")
}

// TestConstants_CompileTimeIsLinear: eight times as many constants took sixty times as long, which is
// eight times as long as eight scripts with as many between them. A busy machine can make one of the
// times longer, but not all of those tried.
func TestConstants_CompileTimeIsLinear(t *testing.T) {
	used := func() time.Duration { // of the processor, which others may keep busy
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano())
	}
	compiling := func(times int, source string) time.Duration {
		began := used()
		for range times {
			if _, err := luac.Compile("a.lua", []byte(source), sandbox.Functions); err != nil {
				t.Fatal(err)
			}
		}
		return max(used()-began, time.Millisecond)
	}
	for name, shape := range constantShapes {
		few, many := time.Hour, time.Hour
		for tries := 0; tries < 2 || many > 4*few && tries < 20; tries++ {
			few, many = min(few, compiling(8, shape(2000))), min(many, compiling(1, shape(16000)))
		}
		if many > 4*few {
			t.Errorf("%s: %v for eight times 2,000 constants, %v for 16,000", name, few, many)
		}
	}
}

// TestConstants_ErrorsKeepTheirPlace: what is pooled has its number in its line.
func TestConstants_ErrorsKeepTheirPlace(t *testing.T) {
	source := "local x = {}\n" + repeated(1000, "x.a%d = 'v%[1]d'\n")
	for _, test := range []struct{ code, want string }{
		{`return x.a999.more.still`, `a.lua:1002: attempt to index x.a999.more (a nil value), key "still"`},
		{`return x.nothing()`, `a.lua:1002: attempt to call x.nothing, which is not a function`},
		{`return x:nothing()`, `a.lua:1002: attempt to call x:nothing, which is not a function`},
		{`return x["one more"] + 77777`, `a.lua:1002: attempt to perform arithmetic on x["one more"] (a nil value)`},
		{`return {` + repeated(60, "'n%d', ") + `x.nothing.more}`, `a.lua:1002: attempt to index x.nothing (a nil value), key "more"`},
	} {
		if got := runProgramAs(t, "a.lua", source+test.code); got != test.want {
			t.Errorf("%s: got %s, want %s", test.code, got, test.want)
		}
	}
	_, err := luac.Compile("a.lua", []byte(source+"do local t = {'y999', goto_ = 'z999'}\ngoto nowhere end"), sandbox.Functions)
	if err == nil || !strings.HasPrefix(err.Error(), "a.lua:1003:") {
		t.Errorf("got %v", err)
	}
}

// TestLibrary_CompiledWhenRequired goes by the memory that compiling takes.
func TestLibrary_CompiledWhenRequired(t *testing.T) {
	allocated := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	files := map[string]string{
		"activities/a.lua": `Activity.register("a", function(call) return call.name and require(call.name).last end)`,
	}
	plain := allocated(func() { open(t, files) })
	files["lib/names.lua"] = "return { first = 0,\n" + repeated(4000, "k%d = 'value %[1]d of many',\n") + "last = 1 }"
	compiling := allocated(func() {
		if _, err := luac.Compile("lib/names.lua", []byte(files["lib/names.lua"]), sandbox.Functions); err != nil {
			t.Fatal(err)
		}
	})
	var g *Generation
	opening := allocated(func() { g = open(t, files) })
	if opening > plain+compiling/2 {
		t.Errorf("to open a project takes %d bytes, with a library that it does not require %d; to compile that takes %d", plain, opening, compiling)
	}
	result, err := g.Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{Call: map[string]any{"name": "names"}})
	if err != nil || fmt.Sprint(result.Value) != "1" {
		t.Errorf("got %v, %v", result.Value, err)
	}
}
