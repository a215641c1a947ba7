package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/store"
)

// values is what the expressions of the tests are evaluated over.
const values = `{
  "state": {"user": {"name": "Ann", "age": 30, "note": null, "first-name": "A"}, "items": [{"price": 12, "n": "a"}, {"price": 5, "n": "b"}, {"n": "c"}],
            "total": 120, "rate": 1.10, "big": 123456789012345678901234567890, "flag": false, "empty": "", "list": [3, 1, 2], "i": 1, "words": ["x", "y"]},
  "input": {"amount": 50, "name": "Bob", "text": "a†b"}
}`

func lookup(t *testing.T) engine.Lookup {
	data, err := store.DecodeJSON([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	return func(path store.Path) (any, bool, bool, error) {
		v, ok := data.(map[string]any)[path.Kind()]
		if ok {
			v, ok = store.Dig(v, path)
		}
		return v, ok, strings.Contains(path.String(), "open"), nil
	}
}

// evaluate gives the value as JSON, "missing: paths", or "error: …".
func evaluate(t *testing.T, text string) string {
	e, err := engine.ParseExpr(text)
	if err != nil {
		return "error: " + err.Error()
	}
	v, missing, err := e.Eval(lookup(t))
	switch {
	case err != nil:
		return "error: " + err.Error()
	case missing != nil:
		return fmt.Sprint("missing: ", missing.Paths)
	}
	return string(store.EncodeJSON(v))
}

// TestExpressions holds protocol §4, "As an input".
func TestExpressions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`†state.user.name`, `"Ann"`},
		{`†state.user.note`, `null`},
		{`†state.user["first-name"]`, `"A"`},
		{`†state.user.nope`, `missing: [†state.user.nope]`},
		{`†state.items[1].n`, `"b"`},
		{`†state.rate`, `1.10`}, // a reference keeps the text of its numbers
		{`†state.big`, `123456789012345678901234567890`},
		// existence, not truthiness
		{`†state.flag || †input.name`, `false`},
		{`†state.empty || †input.name`, `""`},
		{`†state.user.note || †input.name`, `null`},
		{`†state.nope || †input.name`, `"Bob"`},
		{`†state.nope || †input.nope`, `missing: [†state.nope †input.nope]`},
		{`†input.nope || "anonymous"`, `"anonymous"`},
		{`†input.nope || false`, `false`},
		{`†input.name && †state.total`, `120`},
		{`†input.nope && †state.total`, `missing: [†input.nope]`},
		{`†state.nope || †input.name && †state.total`, `120`},
		{`†((†state.nope || †input.name) && †state.total)`, `120`},
		{`†(†state.nope && †input.name || 7)`, `7`},
		// the rest of the language, on references as values
		{`†input.amount * 1.2`, `60`},
		{`†input.amount + 1`, `51`},
		{`†state.rate * 2`, `2.2`},
		{`†state.total > 100 ? †state.rate : †state.nope`, `1.10`},
		{`†state.total < 100 ? †state.nope : †state.big`, `123456789012345678901234567890`},
		{`†(len(†state.items) > 2)`, `true`},
		{`†(filter(†state.items, .price > 10))`, `[{"n":"a","price":12}]`},
		{`†(count(†state.items, .price > 1 and .n != "b"))`, `1`},
		{`†(map(†state.items, .n))`, `["a","b","c"]`},
		{`†(map(†state.list, # * #index))`, `[0,1,4]`},
		{`†(sum(†state.list))`, `6`},
		{`†(sort(†state.list))`, `[1,2,3]`},
		{`†(any(†state.list, # == †state.i))`, `true`},
		{`†(find(†state.items, .n == †state.nope))`, `missing: [†state.nope]`},
		{`†state.list[†state.i]`, `1`},
		{`†(split("a,b", ",")[1])`, `"b"`},
		{`†(groupBy(†state.items, .n).a)`, `[{"n":"a","price":12}]`},
		{`†("a" in groupBy(†state.items, .n))`, `true`},
		{`†(keys(groupBy(†state.items, .n)))`, `["a","b","c"]`},
		{`†(split("a,b,c", ",", 2))`, `["a","b,c"]`},
		{`†(len(†state.user.note))`, "error: len does not take null\n    †(len(†state.user.note))\n      ^"},
		{`†state.i in †state.list`, `true`},
		{`†state.total not in †state.list`, `true`},
		{`†("name" in †state.user)`, `true`},
		{`†([type(†state.big), type(†state.list), type(†state.i), type(split("a", ","))])`, `["number","array","number","array"]`},
		{`†(†state.total > 100 and †input.amount < 10)`, `false`},
		{`†(not (†state.total > 100))`, `false`},
		{`†("a" + "†" + †input.text)`, `"a†a†b"`},
		{`†([†state.i, †input.name])`, `[1,"Bob"]`},
		{`†({"n": †input.name})`, `{"n":"Bob"}`},
		{`†(join(†state.words, "-"))`, `"x-y"`},
		{`†(replace("a-b", "-", "+"))`, `"a+b"`},
		{`†(concat(†state.list, [9]))`, `[3,1,2,9]`},
		{`†(upper(†state.nope || †input.name))`, `"BOB"`},
		{`†input.name matches "^B"`, `true`},
		// a missing reference is caught wherever it stands
		{`†state.nope * 2 || 5`, `5`},
		{`†(len(†state.nope) || 5)`, `5`},
		{`†state.nope * 2`, `missing: [†state.nope]`},
		{`†(map(†state.items, .price))`, `missing: []`},
		// a type error is an error of the call
		{`†input.name * 2`, "error: invalid operation: string * int\n    †input.name * 2\n                ^"},
		{`†(not †state.i)`, "error: a value here has not the type that is needed\n    †(not †state.i)\n      ^"},
		{`†(filter(†state.i, true))`, "error: a value here has not the type that is needed\n    †(filter(†state.i, true))\n      ^"},
		{`†state.i in 5`, "error: in looks into an array or an object, not into a number\n    †state.i in 5\n             ^"},
		{`†state.i % 0`, "error: a division by zero\n    †state.i % 0\n             ^"},
		{`†state.big + 1`, "error: can't add an integer too large to calculate with and a number\n    †state.big + 1\n               ^"},
		{`†(†input.name + 1)`, "error: can't add a string and a number\n    †(†input.name + 1)\n                  ^"},
	} {
		if got := evaluate(t, c.text); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestExpressionErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`†state.a ||| †input.b`, "unexpected \"|\"\n    †state.a ||| †input.b\n               ^"},
		{`†state.`, "expected a key, found the end\n    †state.\n           ^"},
		{`†`, "expected a kind, found the end\n    †\n     ^"},
		{`†state.a > 1 || †state.b`, `between conditions write "or"`},
		{`†(†state.a == 1 && †state.b)`, `between conditions write "and"`},
		{`†(filter(†state.a, .x || .y))`, `inside a predicate write "or"`},
		{`†state.a + foo`, "unknown name foo (a reference begins with †)\n    †state.a + foo\n               ^"},
		{`†(lenn(†state.a))`, `unknown function lenn (did you mean "len"?)`},
		{`†(1..1000)`, "ranges are not allowed"},
		{`†(reduce(†state.a, # + #acc))`, "the function reduce is not allowed"},
		{`†(let x = 1; x)`, "not allowed"},
		{`†(filter(†state.a, any(#, # > 1)))`, "predicates do not nest"},
		{`†(now())`, "the function now is not allowed"},
		{`†(repeat("x", 1000))`, "the function repeat is not allowed"},
		{`†state.a + ǂ`, "a reference begins with †"},
		{`†(` + strings.Repeat("(", 5000) + `)`, "too long"},
		{`†((†state.a)`, "the expression ends too early"},
	} {
		_, err := engine.ParseExpr(c.text)
		var typed *engine.ExprError
		if err == nil || !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "ǂ") && !strings.Contains(c.text, "ǂ") {
			t.Errorf("%s: the error shows a name of ours: %v", c.text, err)
		}
	}
}

func TestExpressionReads(t *testing.T) {
	e, err := engine.ParseExpr(`†(†state["b"] || †input.a.0 + len(†state.b))`)
	if got := fmt.Sprint(e.Reads()); err != nil || got != "[†state.b †input.a.0]" {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestExpressionBudget holds that a short expression can't make much.
func TestExpressionBudget(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	sum := "†(†input.x" + strings.Repeat(" + †input.x", 300) + ")"
	for _, text := range []string{sum, `†(replace(†input.x, "", †input.x))`} {
		e, err := engine.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = e.Eval(func(store.Path) (any, bool, bool, error) { return long, true, false, nil })
		if err == nil || !strings.Contains(err.Error(), "past the budget") {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

// TestOutputPaths holds protocol §4, "As an output path".
func TestOutputPaths(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`†a.x`, `[[†a.x]]`},
		{`†a.x || †a.y`, `[[†a.x] [†a.y]]`},
		{`†a.x && †b.x`, `[[†a.x †b.x]]`},
		{`(†a.x || †a.y) && †a.log`, `[[†a.x †a.log] [†a.y †a.log]]`},
		{`†((†a.x || †a.y) && †a.log)`, `[[†a.x †a.log] [†a.y †a.log]]`},
		{`†a.log && (†a.x || †a.y)`, `[[†a.log †a.x] [†a.log †a.y]]`},
		{`†a.x || †a.y && †a.z`, `[[†a.x] [†a.y †a.z]]`},
		{`†a.x && †a.x`, `[[†a.x]]`},
		{`†a.x && †a.x.y`, `error`},
		{`†a.x || †a.x.y`, `[[†a.x] [†a.x.y]]`},
		{`†a.x or †a.y`, `error`},
		{`†a.x + 1`, `error`},
		{`†a.x || "b"`, `error`},
		{`††a`, `error`},
	} {
		got := "error"
		if out, err := engine.ParseOutput(c.text); err == nil {
			got = strings.NewReplacer("{", "", "}", "").Replace(fmt.Sprint(out.Alternatives))
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}
