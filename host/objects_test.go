package host

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"obelus/engine/plan"
)

// vault is an object of an embedding program with what a script must not reach: a mutex
// that guards unexported fields.
type vault struct {
	mu     sync.Mutex
	secret map[string]int
	Name   string
	Open   map[string]string
	Lock   sync.Mutex
	Inner  guarded
	Shelf  []guarded
	Events chan int
	Words  []string
	Prices prices
	Any    map[string]any
	List   []map[string]string
}

func (v *vault) Each(maps []map[string]string) (n int) {
	for _, m := range maps {
		n += v.Named(m)
	}
	return n
}

// prices is a map with a method of its own, which changes it.
type prices map[string]int

func (p prices) Set(name string, n int) int {
	p[name] = n
	return n
}

// guarded is a value with a lock, as a field and as an element.
type guarded struct {
	sync.Mutex
	N int
}

func (v *vault) Take(name string, n int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secret[name] -= n
	return v.secret[name]
}

func (v *vault) Note(any) string { return "noted" }

func (v *vault) All(values ...any) int { return len(values) }

func (v *vault) Texts(values []string) int { return len(values) }

func (v *vault) Named(m map[string]string) (n int) {
	for range m {
		n++
	}
	return n
}

func (v *vault) Ask(f func() string) string { return f() }

func (v *vault) Guarded(g *guarded) int { return g.N }

func newVault() *vault {
	return &vault{
		secret: map[string]int{"tea": 3}, Name: "a", Open: map[string]string{"k": "v"},
		Shelf: []guarded{{N: 1}, {N: 2}}, Events: make(chan int), Words: []string{"w"}, Prices: prices{}, Any: map[string]any{}, List: []map[string]string{{}},
	}
}

func withVault(t *testing.T, body string, v *vault) *Generation {
	t.Helper()
	h, err := Open(Config{
		FS:      project(map[string]string{"activities/a.lua": "Activity.register('a', function(call)\n" + body + "\nend)"}),
		Objects: map[string]any{"vault": v, "other": newVault()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h.Generation()
}

// TestObjects_OnlyMethodsAndFields: of an object a script has its methods, its exported
// fields and the elements of its lists and maps; no copy of it, no lock of it, no channel.
func TestObjects_OnlyMethodsAndFields(t *testing.T) {
	deep := `local t = {} for i = 1, 300 do t = { t } end `
	for _, test := range []struct{ body, want string }{
		{`return -vault`, "attempt to perform arithmetic"},
		{`return vault ^ other`, "attempt to perform arithmetic"},
		{`return -vault.Inner`, "attempt to perform arithmetic"},
		{`vault.Events(1)`, "attempt to call"},
		{`vault.Events()`, "attempt to call"},
		{`return -vault.Events`, "attempt to perform arithmetic"},
		{`vault.Lock:Unlock()`, "Unlock is not for scripts"},
		{`vault.Inner:Unlock()`, "Unlock is not for scripts"},
		{`vault.Inner:lock()`, "lock is not for scripts"},
		{`vault.Lock = other.Lock`, "Lock can't be replaced: it holds a lock"},
		{`vault.Inner = other.Inner`, "Inner can't be replaced: it holds a lock"},
		{`vault.Shelf[1] = other.Shelf[2]`, "1 can't be replaced: it holds a lock"},
		{`vault.Inner = {}`, "Inner can't be replaced: it holds a lock"},
		{`vault.Inner.N = 7 return vault.Inner.N`, "7 <nil>"},
		{`vault.Name = "b" return vault.Name`, `"b" <nil>`},
		{`vault.Words[1] = "x" vault.Name = vault.Words[1] .. "y" return vault.Name`, `"xy" <nil>`},
		{`for _, g in vault.Shelf() do g.N = g.N + 5 end return vault.Shelf[2].N`, "7 <nil>"},
		{`local n = 0 for i, g in vault.Shelf() do n = n + i * vault:Guarded(g) end return n`, "5 <nil>"},
		{`vault.List[1].a = "b" return vault:Each(vault.List) * 10 + vault:Each({ vault.Open, vault.Open })`, "12 <nil>"},
		{`return vault:Named(vault.Open) + vault.prices:Set("tea", 3) + vault.prices.tea`, "7 <nil>"},
		{`vault.Any.self = vault.Any return vault:Note(vault.Any)`, "bad argument #1 to Note: a map that is nested deeper than 200"},
		{`vault.Any.a = vault.Open return vault:Note(vault.Any)`, `"noted" <nil>`},
		{`for k, v in vault.Open() do return k .. v end`, `"kv" <nil>`},
		{deep + `return vault:Note(t)`, "bad argument #1 to Note: a table that is nested deeper than 200"},
		{deep + `return vault:All(1, t)`, "bad argument #2 to All: a table that is nested deeper than 200"},
		{deep + `return vault:Note(function() return t end)`, `"noted" <nil>`},
		{deep + `vault.Open = t`, "a table that is nested deeper than 200"},
		{`local t = {} t.t = t return vault:Note(t)`, `"noted" <nil>`},
		// What is said of an object that is not the argument wanted does not print it.
		{`return vault:Take(vault, 1)`, "bad argument #1 to Take: string expected, got object"},
		{`return vault.Take(vault.Inner, "tea", 1)`, "object expected, got object"},
		{`return vault:Texts({ "a", vault })`, "bad argument #1 to Texts: string expected, got object"},
		{`return vault:Named({ a = vault })`, "bad argument #1 to Named: string expected, got object"},
		{`vault.Name = vault`, "string expected, got object"},
		{`vault.Open.k = vault`, "string expected, got object"},
		{`return vault:Ask(function() return vault end)`, "string expected, got object"},
	} {
		got, err := runA(withVault(t, test.body, newVault()), plan.Invocation{})
		text := fmt.Sprint(got, " ", err)
		if !strings.Contains(text, test.want) || strings.Contains(text, "tea:") {
			t.Errorf("%s\ngot  %s\nwant %s", test.body, text, test.want)
		}
	}
}

// TestObjects_FieldsFromSeveralCalls: calls that read and write the same exported map, list
// and text at the same time do not end the program.
func TestObjects_FieldsFromSeveralCalls(t *testing.T) {
	v := newVault()
	g := withVault(t, `for i = 1, 5000 do
		vault.Open["k" .. i % 7] = "v" .. i
		local s = vault.Open.k3
		for k in vault.Open() do s = k end
		vault.Name = ("x"):rep(i % 9)
		s = #vault.Name + #vault.Open
		vault.Shelf[1].N = i
		pcall(vault.Take, vault, vault, 1)
		vault:Take("tea", 0)
		vault:Named(vault.Open)
		vault:Each({ vault.Open })
		vault.List[1]["k" .. i % 3] = "v"
		vault:Each(vault.List)
	end return true`, v)
	var group sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		group.Go(func() { _, errs[i] = runA(g, plan.Invocation{Timeout: 10 * time.Minute}) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
