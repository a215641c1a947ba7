package expr_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"obelus/engine/expr"
	"obelus/store"
)

// values is what the expressions of the tests are evaluated over.
const values = `{
  "state": {"user": {"name": "Ann", "age": 30, "note": null, "first-name": "A"}, "items": [{"price": 12, "n": "a"}, {"price": 5, "n": "b"}, {"n": "c"}],
            "total": 120, "rate": 1.10, "big": 123456789012345678901234567890, "flag": false, "empty": "", "list": [3, 1, 2], "i": 1, "words": ["x", "y"],
            "four": 4000000000, "max": 9223372036854775807, "min": -9223372036854775808, "odd": 9007199254740993, "float": 9007199254740992.0,
            "limit": 9223372036854775808.0, "huge": 100000000000000000000},
  "input": {"amount": 50, "name": "Bob", "text": "a†b"}
}`

func lookup(t *testing.T) expr.Lookup {
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
	e, err := expr.Parse(text)
	if err != nil {
		return "error: " + err.Error()
	}
	v, missing, err := e.Eval(context.Background(), lookup(t))
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
		{`†input.nope || null`, `null`},
		{`†input.nope || nil`, `null`},
		{`†(null)`, `null`},
		{`†(null || 1)`, `null`},
		{`†(†state.user.note == null && null)`, "error: && asks which reference exists, and one side is always true or false; between conditions write \"and\"\n    †(†state.user.note == null && null)\n                               ^"},
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
		{`†(filter(†state.items, #['price'] > 10))`, `[{"n":"a","price":12}]`}, // a member, and no key of a path
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
		{`†(groupBy([1, null, 2, 1], #))`, `{"1":[1,1],"2":[2],"null":[null]}`},
		{`†(groupBy([1, "1"], #))`, "error: groupBy: the keys of an object are strings, and there are two keys 1 of different types in \"†(groupBy([1, \\\"1\\\"], #))\""},
		{`†(keys(groupBy(["true", true], #)))`, "error: groupBy: the keys of an object are strings, and there are two keys true of different types\n    †(keys(groupBy([\"true\", true], #)))\n      ^"},
		{`†(split("a,b,c", ",", 2))`, `["a","b,c"]`},
		{`†([†state.user.note == null, null == nil, null ?? 1, [null], {"a": null, null: 1}, type(null), {"null": 2}.null])`,
			`[true,true,1,[null],{"a":null,"null":1},"null",2]`},
		{`†(filter(†state.items, #?.price == null))`, `[{"n":"c"}]`},
		{`†(map(†state.list, # > 1 ? # : null))`, `[3,null,2]`},
		{`†state.i > 0 ? null : 1`, `null`},
		{`†(filter(null, true))`, "error: filter takes an array, not null\n    †(filter(null, true))\n             ^"},
		// a path within a literal or a comment is none, and a literal ends where it ends
		{`†(†input.name + '\'†x' + "\"†y")`, `"Bob'†x\"†y"`},
		{"†(`\\` + `†x`)", `"\\†x"`},
		{`"// †a" == †input.name || "/* †b */"`, `error: an expression begins with †
    "// †a" == †input.name || "/* †b */"
    ^`},
		{`†input.name + "// /* */"`, `"Bob// /* */"`},
		{`†state.user.note - 1`, "error: - takes two numbers, not null and a number\n    †state.user.note - 1\n                     ^"},
		{`†(1 + null)`, "error: can't add a number and null\n    †(1 + null)\n        ^"},
		{`†(abs(null))`, "error: abs takes a number, not null\n    †(abs(null))\n      ^"},
		{`†(take(null, 1))`, "error: take takes an array, not null\n    †(take(null, 1))\n      ^"},
		{`†(len(†state.user.note))`, "error: len takes a string, an array or an object, not null\n    †(len(†state.user.note))\n      ^"},
		{`†state.i in †state.list`, `true`},
		{`†state.total not in †state.list`, `true`},
		{`†("name" in †state.user)`, `true`},
		{`†([type(†state.big), type(†state.list), type(†state.i), type(split("a", ","))])`, `["number","array","number","array"]`},
		{`†(†state.total > 100 and †input.amount < 10)`, `false`},
		{`†(not (†state.total > 100))`, `false`},
		{`†("a" + "†" + †input.text)`, `"a†a†b"`},
		{`†([†state.i, †input.name])`, `[1,"Bob"]`},
		{`†({"n": †input.name})`, `{"n":"Bob"}`},
		{`†({(†input.name): 1, "ǂ一": 2})`, `{"Bob":1,"ǂ一":2}`},
		{`†(join(†state.words, "-"))`, `"x-y"`},
		{`†(replace("a-b", "-", "+"))`, `"a+b"`},
		{`†(concat(†state.list, [9]))`, `[3,1,2,9]`},
		{`†(upper(†state.nope || †input.name))`, `"BOB"`},
		{`†input.name matches "^B"`, `true`},
		{`†([†input.name matches ("^" + "B"), †state.user.note matches "a", "a" matches †state.user.note, not ("a" matches "b")])`, `[true,false,false,true]`},
		// an index is an integer however it was computed
		{`†([†state.list[round(0.6)], †state.list[floor(2.5)], †state.list[-1.0], †state.list[1e0]])`, `[1,2,2,1]`},
		{`†(†state.list[0.5])`, `missing: []`},
		{`†(†state.list[3.0] || "none")`, `"none"`},
		// the order is exact, and of what is equal the order in which it stood
		{`†(sort([9007199254740993, 9007199254740992.0, 9007199254740991]))`, `[9007199254740991,9007199254740992,9007199254740993]`},
		{`†(sortBy([{"k": 9007199254740993}, {"k": 9007199254740992.0}, {"k": 1}], .k, "desc")[2].k)`, `1`},
		{`†(map(sortBy([{"k": 9007199254740993}, {"k": 9007199254740992.0}], .k), string(.k)))`, `["9007199254740992","9007199254740993"]`},
		{`†(map(sortBy([{"k": 2, "n": 1}, {"k": 1, "n": 2}, {"k": 2, "n": 3}, {"k": 1, "n": 4}], .k), .n))`, `[2,4,1,3]`},
		{`†(map(sortBy([{"k": 2, "n": 1}, {"k": 1, "n": 2}, {"k": 2, "n": 3}, {"k": 1, "n": 4}], .k, "desc"), .n))`, `[1,3,2,4]`},
		{`†(sortBy([1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40], # % 2))`, `[2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39]`},
		// strings are counted in characters, as len does
		{`†("éa"[1:2])`, `"a"`},
		{`†("éab"[:1] + "éab"[-1:] + "éab"[1:-1] + "éab"[2:1] + "éab"[5:] + "éab"[-9:9])`, `"ébaéab"`},
		{`†input.text[:2]`, `"a†"`},
		{`†input.text[indexOf(†input.text, "b"):]`, `"b"`},
		{`†([indexOf("éa†a", "a"), lastIndexOf("éa†a", "a"), indexOf("é", "x"), indexOf("é", ""), len(†input.text[1:])])`, `[1,3,-1,0,2]`},
		{`†([†state.list[1:], †state.list[:-1], first(†state.list), last(†state.list), first([]), first(†state.i)])`, `[[1,2],[3,1],3,2,null,null]`},
		{`†(first(†input.text))`, "error: first takes an array, not a string\n    †(first(†input.text))\n      ^"},
		{`†([†input.text[1e30:], †input.text[-1:1]])`, "error: the result is an integer too large to calculate with\n    †([†input.text[1e30:], †input.text[-1:1]])\n                  ^"},
		{`†([[1] == [1.0], {"a": [1, {"b": 2}]} == {"a": [1.0, {"b": 2.0}]}, {"a": 1} == {"b": 1}, {"a": 1} == {}, max([1, [3]], 2), min(2.5, [2])])`, `[true,true,false,false,3,2]`},
		{`†("abc"[:"x"])`, "error: a slice begins and ends at an integer, not a string\n    †(\"abc\"[:\"x\"])\n           ^"},
		{`†(†input.text[:†input.name])`, "error: a slice begins and ends at an integer, not a string\n    †(†input.text[:†input.name])\n                 ^"},
		{`†(indexOf(†state.i, "a"))`, "error: indexOf takes a string, not a number\n    †(indexOf(†state.i, \"a\"))\n      ^"},
		{`†(†state.user[1:])`, "error: arrays and strings have slices, not an object\n    †(†state.user[1:])\n                 ^"},
		// a missing reference is caught wherever it stands
		{`†state.nope * 2 || 5`, `5`},
		{`†(len(†state.nope) || 5)`, `5`},
		{`†state.nope * 2`, `missing: [†state.nope]`},
		{`†(map(†state.items, .price))`, `missing: []`},
		// a type error is an error of the call
		{`†input.name * 2`, "error: * takes two numbers, not a string and a number\n    †input.name * 2\n                ^"},
		{`†(not †state.i)`, "error: not takes true or false, not a number\n    †(not †state.i)\n      ^"},
		{`†(filter(†state.i, true))`, "error: filter takes an array, not a number\n    †(filter(†state.i, true))\n             ^"},
		{`†(count(†input.name, # == 1))`, "error: count takes an array, not a string\n    †(count(†input.name, # == 1))\n            ^"},
		{`†(map(†input.name, #))`, "error: map takes an array, not a string\n    †(map(†input.name, #))\n          ^"},
		{`†(map(†state, #))`, "error: map takes an array, not an object\n    †(map(†state, #))\n          ^"},
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

func TestExpression_Errors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`†state.a ||| †input.b`, "unexpected \"|\"\n    †state.a ||| †input.b\n               ^"},
		{`†state.`, "expected a key, found the end\n    †state.\n           ^"},
		{`†`, "expected a kind, found the end\n    †\n     ^"},
		{`†(filter(†state.items, .n == †state.user['first-name']))`, "write [\"first-name\"] for the key in single quotes\n    †(filter(†state.items, .n == †state.user['first-name']))\n                                             ^"},
		{`†state.a > 1 || †state.b`, `between conditions write "or"`},
		{`†(†state.a == 1 && †state.b)`, `between conditions write "and"`},
		{`†(filter(†state.a, .x || .y))`, `inside a predicate write "or"`},
		{`†state.a + foo`, "unknown name foo (a reference begins with †)\n    †state.a + foo\n               ^"},
		{`†(lenn(†state.a))`, `unknown function lenn (did you mean "len"?)`},
		{`†state.a "x`, "a string is not closed"},
		{`†state.a = 1`, `unexpected "=" (== asks whether values are equal)`},
		{`†state.a == "<>" === 1`, `unexpected "=" (== asks whether values are equal)`},
		{`†state.a <> 1`, `unexpected ">" (!= asks whether they differ)`},
		{`†state.a ~= 1`, `unexpected "~" (!= asks whether they differ)`},
		{`†state.a !== 1`, `unexpected "=" (!= asks whether they differ)`},
		{`†(1 + †state.a(1))`, "†state.a is a reference, and no function\n    †(1 + †state.a(1))\n          ^"},
		{`†(1..1000)`, "ranges are not allowed"},
		{`†(reduce(†state.a, # + #acc))`, "the function reduce is not allowed"},
		{`†(let x = 1; x)`, "not allowed"},
		{`†(filter(†state.a, any(#, # > 1)))`, "predicates do not nest"},
		{`†(now())`, "the function now is not allowed"},
		{`†(repeat("x", 1000))`, "the function repeat is not allowed"},
		{`†state.a + ǂ`, "a reference begins with †"},
		{`†(` + strings.Repeat("(", 5000) + `)`, "too long"},
		{`†("` + strings.Repeat("é", 5000) + `")`, `in "†(\"` + strings.Repeat("é", 17) + `…"`},
		{`†("x` + strings.Repeat("é", 5000) + `")`, `in "†(\"x` + strings.Repeat("é", 17) + `…"`},
		{`†(1 < †state.a < 3)`, "a comparison has two sides: write two of them, as in 1 < †a and †a < 3\n    †(1 < †state.a < 3)\n                   ^"},
		{`†(not (1 < 2 <= †state.a > 3))`, "a comparison has two sides: write two of them, as in 1 < †a and †a < 3\n    †(not (1 < 2 <= †state.a > 3))\n                             ^"},
		{`†(any(†state.a, 1 < # < 3))`, "a comparison has two sides: write two of them, as in 1 < †a and †a < 3\n    †(any(†state.a, 1 < # < 3))\n                          ^"},
		{`†((1 < †state.a) && (†state.a < 3))`, "&& asks which reference exists, and one side is always true or false; between conditions write \"and\"\n    †((1 < †state.a) && (†state.a < 3))\n                     ^"},
		{`†state.a matches "%d("`, "not a regular expression: missing closing ): `%d(`\n    †state.a matches \"%d(\"\n             ^"},
		{`†((†state.a)`, "the expression ends too early"},
		{`†({a: 1, †state.b: 2})`, "†state.b stands where a name belongs: a key that is a reference stands in parentheses, a member in brackets\n    †({a: 1, †state.b: 2})\n             ^"},
		{`†(filter(†state.a, .†state.b == 1))`, "†state.b stands where a name belongs"},
		{`†((†state.a || †input.b)?.†state.b)`, "†state.b stands where a name belongs"},
	} {
		_, err := expr.Parse(c.text)
		var typed *expr.Error
		if err == nil || !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "ǂ") && !strings.Contains(c.text, "ǂ") {
			t.Errorf("%s: the error shows a name of ours: %v", c.text, err)
		}
	}
}

func TestExpression_Reads(t *testing.T) {
	e, err := expr.Parse(`†(†state["b"] || †input.a.0 + len(†state.b))`)
	if got := fmt.Sprint(e.Reads()); err != nil || got != "[†state.b †input.a.0]" {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestExpression_Integers holds that an integer is exact or refused: expr's own
// wrap around, or become floats.
func TestExpression_Integers(t *testing.T) {
	const tooLarge = "error: the result is an integer too large to calculate with"
	for _, c := range []struct{ text, want string }{
		{`†state.four * †state.four`, tooLarge + "\n    †state.four * †state.four\n                ^"},
		{`†(3 + †state.max * 2)`, tooLarge + "\n    †(3 + †state.max * 2)\n                     ^"},
		{`†state.max + 1`, tooLarge + "\n    †state.max + 1\n               ^"},
		{`†(-†state.max - 2)`, tooLarge + "\n    †(-†state.max - 2)\n                  ^"},
		{`†(-†state.min)`, tooLarge + "\n    †(-†state.min)\n      ^"},
		{`†(abs(†state.min))`, tooLarge + "\n    †(abs(†state.min))\n      ^"},
		{`†(sum([†state.max, 1]))`, tooLarge + "\n    †(sum([†state.max, 1]))\n      ^"},
		{`†(sum([†state.max, 1], # * 1))`, tooLarge + "\n    †(sum([†state.max, 1], # * 1))\n      ^"},
		{`†(map([†state.max], # * 2))`, tooLarge + "\n    †(map([†state.max], # * 2))\n                          ^"},
		{`†(int(1e19))`, tooLarge + "\n    †(int(1e19))\n      ^"},
		{`†(int(-9223372036854777856.0))`, tooLarge + "\n    †(int(-9223372036854777856.0))\n      ^"},
		{`†(int("9223372036854775808"))`, tooLarge + "\n    †(int(\"9223372036854775808\"))\n      ^"},
		{`†state.min / -1`, tooLarge + "\n    †state.min / -1\n               ^"},
		{`†(2 ** 63)`, tooLarge + "\n    †(2 ** 63)\n        ^"},
		{`†(3 ^ 1000000000000)`, tooLarge + "\n    †(3 ^ 1000000000000)\n        ^"},
		{`†state.big * 2`, "error: an integer here is too large to calculate with\n    †state.big * 2\n               ^"},
		{`†state.big > 2`, "error: an integer here is too large to calculate with\n    †state.big > 2\n               ^"},
		{`†(-†state.big)`, "error: an integer here is too large to calculate with\n    †(-†state.big)\n      ^"},
		{`†(abs(†state.big))`, "error: an integer here is too large to calculate with\n    †(abs(†state.big))\n      ^"},
		{`†(max(†state.big, 1))`, "error: max does not take an integer too large to calculate with\n    †(max(†state.big, 1))\n      ^"},
		{`†(sum([1, †state.big]))`, "error: can't add a number and an integer too large to calculate with\n    †(sum([1, †state.big]))\n      ^"},
		{`†(9223372036854775808)`, "error: the integer is too large to calculate with\n    †(9223372036854775808)\n                         ^"},
		// what fits is exact
		{`†([†state.max + 0, †state.max - 1, †state.max * 1, -†state.max - 1, -†state.max, †state.max / 1, †state.max ** 1, †state.max % 10])`,
			`[9223372036854775807,9223372036854775806,9223372036854775807,-9223372036854775808,-9223372036854775807,9223372036854775807,9223372036854775807,7]`},
		{`†([abs(†state.max), abs(-5), int(†state.max), round(†state.max), floor(†state.max), ceil(†state.max), int(9007199254740993.0), int(-2.7)])`,
			`[9223372036854775807,5,9223372036854775807,9223372036854775807,9223372036854775807,9223372036854775807,9007199254740992,-2]`},
		{`†([mean([†state.max, †state.max]), median(†state.max, 1, [†state.max]), min(†state.max, †state.max - 1), max([†state.max - 1], †state.max)])`,
			`[9223372036854775807,9223372036854775807,9223372036854775806,9223372036854775807]`},
		{`†([sum([†state.max, -†state.max, 5]), sum([1, 2], # * 2), sum([]), sum([0.5, 1]), sum(†state.items, #?.price ?? 1)])`, `[5,6,0,1.5,18]`},
		{`†([3 ** 35, 2 ** 62, (-2) ** 63, 0 ** 0, 2 ** -1, 2.0 ** 63, 4 ** 0.5])`,
			`[50031545098999707,4611686018427387904,-9223372036854775808,1,0.5,9223372036854776000,2]`},
		{`†([6 / 2, 7 / 2, †state.odd / 2, -1 / 4, mean([1, 2]), mean([]), median([1, 2, 4, 3]), mean([0.5, 1])])`,
			`[3,3.5,4503599627370496,-0.25,1.5,0,2.5,0.75]`},
		{`†([max([]), min([3, [1.5]], 2), max("a" + "b" == "ab" ? 1 : 2), string(12000000 / 2)])`, `[null,1.5,1,"6000000"]`},
		{`†(1 / 0)`, "error: the expression gives a number that JSON does not have in \"†(1 / 0)\""},
		// an integer and a float are compared as the numbers they are
		{`†([†state.odd == †state.float, †state.odd != †state.float, †state.odd > †state.float, †state.odd <= †state.float, †state.float < †state.odd])`,
			`[false,true,true,false,true]`},
		{`†([†state.odd >= †state.float, †state.float >= †state.odd, †state.odd >= †state.odd, †state.i > -1, -1.5 < †state.i])`,
			`[true,false,true,true,true]`},
		{`†([†state.odd in [†state.float], [†state.odd] == [†state.float], [1] == [1.0], †state.odd - 1 == †state.float, †state.float in [†state.odd - 1]])`,
			`[false,false,true,true,true]`},
		{`†([†state.max == †state.limit, †state.max < †state.limit, †state.limit > †state.max, †state.min == -†state.limit, †state.max > 1e300])`,
			`[false,true,true,true,false]`},
		{`†([max(†state.float, †state.odd), min(†state.odd, †state.float), †state.huge == 1e20, †state.huge != 1e20, †state.big == 1e20, †state.huge == †state.huge])`,
			`[9007199254740993,9007199254740992,true,false,false,true]`},
		// and types that do not fit are told as ever, those of literals before anything runs
		{`†("a" * 2)`, "error: * takes two numbers, not a string and a number\n    †(\"a\" * 2)\n          ^"},
		{`†(5 - null)`, "error: - takes two numbers, not a number and null\n    †(5 - null)\n        ^"},
		{`†input.name - 2`, "error: - takes two numbers, not a string and a number\n    †input.name - 2\n                ^"},
		{`†input.name < †state.i`, "error: < compares two numbers or two strings, not a string and a number\n    †input.name < †state.i\n                ^"},
		{`†(-†input.name)`, "error: - takes a number, not a string\n    †(-†input.name)\n      ^"},
		{`†(mean(†input.name))`, "error: mean takes a number or an array, not a string\n    †(mean(†input.name))\n      ^"},
		{`†(sum(†state.user))`, "error: sum takes an array, not an object\n    †(sum(†state.user))\n          ^"},
		{`†([†input.name < "C", †input.name == "Bob", †input.name != †state.i, †state.list == [3, 1, 2]])`, `[true,true,true,true]`},
	} {
		if got := evaluate(t, c.text); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestExpression_ErrorsInWords holds that what expr says of types is told in the
// words of JSON.
func TestExpression_ErrorsInWords(t *testing.T) {
	for text, want := range map[string]string{
		`†state.float > "x"`:                     "> compares two numbers or two strings, not a number and a string",
		`†state.user > 5`:                        "> compares two numbers or two strings, not an object and a number",
		`†(nil < 1)`:                             "< compares two numbers or two strings, not null and a number",
		`†([1] - [2])`:                           "- takes two numbers, not an array and an array",
		`†(-†state.user)`:                        "- takes a number, not an object",
		`†(not 5)`:                               "not takes true or false, not a number",
		`†(5 and true)`:                          "and takes true or false, not a number and a boolean",
		`†(true and †state.i)`:                   "true or false is needed here, not a number",
		`†(†state.flag or †state.user)`:          "true or false is needed here, not an object",
		`†state.flag or †state.items[0].n`:       "true or false is needed here, not a string",
		`†(filter(†state.items, true and .n))`:   "true or false is needed here, not a string",
		`†(†state.flag or †state.user.note)`:     "true or false is needed here, not null",
		`†(†state.i and true)`:                   "true or false is needed here, not a number",
		`†("a" contains 1)`:                      "contains takes two strings, not a string and a number",
		`†("a" matches 1)`:                       "matches takes two strings, not a string and a number",
		`†(1 startsWith "a")`:                    "startsWith takes two strings, not a number and a string",
		`†(1 endsWith 2)`:                        "endsWith takes two strings, not a number and a number",
		`†(take(†state.list, -1))`:               "take takes 0 elements or more, not -1: write [-1:] for the last ones",
		`†(†state.list | take(-†state.i))`:       "take takes 0 elements or more, not -1: write [-1:] for the last ones",
		`†(take(†state.list, 1.5))`:              "take takes an integer: write int(…) around a number that may have a fraction",
		`†(take(†state.list, †state.float / 7))`: "take takes an integer: write int(…) around a number that may have a fraction",
		`†(take(†state.list, †input.name))`:      "take takes a number of elements, not a string",
		`†(take(†input.name, 1))`:                "take takes an array, not a string",
		`†(keys(5))`:                             "keys takes an object, not a number",
		`†(keys())`:                              "keys takes an object, not 0 values",
		`†(values(†state.user, 2))`:              "values takes an object, not 2 values",
		`†(†state.i matches "a")`:                "matches takes two strings, not a number and a string",
		`†(†input.name ** 2)`:                    "** takes two numbers, not a string and a number",
		`†(1 == "a")`:                            "== compares values of one type, not a number and a string",
		`†(count(†state.i, true))`:               "count takes an array, not a number",
		`†(sortBy(†state.list, #, "down"))`:      `sortBy takes "asc" or "desc" for its order, not "down"`,
		`†(sort(†state.list, []))`:               `sort takes "asc" or "desc" for its order, not an array`,
		`†(sortBy(†state.items))`:                "there are too few arguments",
		`†(sortBy(†state.items, "n"))`:           `sortBy goes by what each element has, and "n" is the same for all (a field is written with a dot: .name)`,
		`†(groupBy(†state.items, "n"))`:          `groupBy goes by what each element has, and "n" is the same for all (a field is written with a dot: .name)`,
		`†(filter(5, true))`:                     "filter takes an array, not a number",
		`†(all(null, true))`:                     "all takes an array, not null",
		`†(reverse(†state.user.note))`:           "reverse takes an array, not null",
		`†(take(†state.user, 1))`:                "take takes an array, not an object",
		`†(take([1, 2], "a"))`:                   "take takes a number of elements, not a string",
		`†(null[1:])`:                            "arrays and strings have slices, not null",
		`†(sort([1, 2], †state.i))`:              `sort takes "asc" or "desc" for its order, not a number`,
		`†({[1]: 1})`:                            "a key of an object is a name, a string, a number or an expression in parentheses",
		`†(5 ** †state.user.note)`:               "** takes two numbers, not a number and null",
		`†(groupBy(†state.items, †state.list))`:  "a group goes by a scalar, not by an array",
		`†(join())`:                              "join takes an array of strings, and perhaps what to put between them",
		`†(join(†state.words, "-", 1))`:          "join takes an array of strings, and perhaps what to put between them",
		`†(join(†state.words, 5))`:               "join puts a string between strings, not a number",
		`†(sort(†state.user))`:                   "sort takes an array, not an object",
		`†(sort(5))`:                             "sort takes an array, not a number",
		`†(sort())`:                              "sort takes an array, and perhaps its order",
		`†(sort([1, 2], "up"))`:                  "sort takes \"asc\" or \"desc\" for its order, not \"up\"",
		`†(split("a,b", ",", "1"))`:              "how many parts split may make is an integer, and not a string",
		`†(sort([1, "a"]))`:                      "< compares two numbers or two strings, not a string and a number",
		`†(†input.name contains 5)`:              "contains takes two strings, not a number",
		`†(†state.list contains 3)`:              "contains takes two strings, not a number",
		`†(†input.name < null)`:                  "< compares two numbers or two strings, not null",
		`†(int("5 - 3"))`:                        `int finds no integer in "5 - 3"`,
		`†(float("[0.5]"))`:                      `float finds no number in "[0.5]"`,
		`†(int("divide by zero"))`:               `int finds no integer in "divide by zero"`,
		`†(int("a\nb"))`:                         `int finds no integer in "a\nb"`,
		`†(float(†state.user.note))`:             "float takes a number or a string, not null",
		`†(5 % 1.5)`:                             "% takes two integers, not a number and a number with a fraction",
		`†(+"a")`:                                "+ takes a number, not a string",
		`†("a" matches ("[interface" + ""))`:     "not a regular expression: missing closing ]: `[interface`",
		`†(1 "")`:                                `unexpected ""`,
		`†(1 "a\"b")`:                            `unexpected "a\"b"`,
		`†(1e999)`:                               "this is no number, or one that is too large",
		`†(upper(5))`:                            "upper takes a string, not a number",
		`†(int(†state.user))`:                    "int takes a number or a string, not an object",
		`†(float("x"))`:                          `float finds no number in "x"`,
		`†(abs(†state.list))`:                    "abs takes a number, not an array",
		`†(1 +)`:                                 `unexpected ")"`,
	} {
		if got, _, _ := strings.Cut(evaluate(t, text), "\n"); got != "error: "+want {
			t.Errorf("%s\n got %s\nwant error: %s", text, got, want)
		}
	}
}

// TestExpression_IntegersAtTheirBounds compares what integers give with what
// integers without bounds do.
func TestExpression_IntegersAtTheirBounds(t *testing.T) {
	var near []int64
	for _, n := range []int64{0, 1 << 31, 1 << 32, 3037000499, 1 << 53, 1 << 62, math.MaxInt64, math.MinInt64} {
		near = append(near, n-2, n-1, n, n+1, n+2, -n)
	}
	for operator, exact := range map[string]func(z, x, y *big.Int) *big.Int{"+": (*big.Int).Add, "-": (*big.Int).Sub, "*": (*big.Int).Mul} {
		e, err := expr.Parse("†in.a " + operator + " †in.b")
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range near {
			for _, b := range near {
				want := exact(new(big.Int), big.NewInt(a), big.NewInt(b))
				got, _, err := e.Eval(context.Background(), func(path store.Path) (any, bool, bool, error) {
					n := map[string]int64{"†in.a": a, "†in.b": b}[path.String()]
					return json.Number(fmt.Sprint(n)), true, false, nil
				})
				if want.IsInt64() && fmt.Sprint(got) != want.String() || !want.IsInt64() && err == nil {
					t.Errorf("%d %s %d gives %v, %v, not %v", a, operator, b, got, err, want)
				}
			}
		}
	}
}

// TestExpression_Budget holds that a short expression can't make much.
func TestExpression_Budget(t *testing.T) {
	defer expr.BoundEvaluation(10 * time.Minute)()
	long := strings.Repeat("x", 100_000)
	sum := "†(†input.x" + strings.Repeat(" + †input.x", 300) + ")"
	for _, text := range []string{sum, `†(replace(†input.x, "", †input.x))`, `†(map(split(†input.x, ""), †input.x))`, `†(map(split(†input.x, ""), [†input.x]))`} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = e.Eval(context.Background(), func(store.Path) (any, bool, bool, error) { return long, true, false, nil })
		if err == nil || !strings.Contains(err.Error(), "past the budget") {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

// TestPredicate_ResolvesReferencesOnce: what a predicate refers to is looked up once, however it is
// written, and outside of one where it is reached.
func TestPredicate_ResolvesReferencesOnce(t *testing.T) {
	for _, text := range []string{
		`†(map(†list, # > 1 ? †x : 0))`, `†(map(†list, †x))`, `†(filter(†list, # == †x))`, `†(map(†list, †x + 0))`,
	} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		looked := map[string]int{}
		_, _, err = e.Eval(context.Background(), func(path store.Path) (any, bool, bool, error) {
			looked[path.String()]++
			if path.Kind() == "list" {
				return []any{json.Number("1"), json.Number("2"), json.Number("3")}, true, false, nil
			}
			return json.Number("5"), true, false, nil
		})
		if err != nil || looked["†x"] != 1 || looked["†list"] > 2 {
			t.Errorf("%s: %v, %v", text, looked, err)
		}
	}
}

// TestExpression_BudgetOfReferences holds that what is done with a large value, again
// at every element of a predicate, or at every mention, has its price.
func TestExpression_BudgetOfReferences(t *testing.T) {
	defer expr.BoundEvaluation(10 * time.Minute)() // what it may make is bounded too
	list := make([]any, 10_000)
	for i := range list {
		list[i] = json.Number("1")
	}
	object := map[string]any{}
	for i := range 1000 {
		object[strconv.Itoa(i)] = json.Number("1")
	}
	values := map[string]any{
		"†input.text": strings.Repeat("é", 1_000_000), "†input.list": list,
		"†input.nested": []any{[]any{list}}, "†input.large": []any{strings.Repeat("x", 1_000_000)},
		"†input.object": object, "†input.pattern": strings.Repeat("é", 1000),
		"†input.named": map[string]any{strings.Repeat("x", 1_000_000): nil}, "†input.digits": json.Number(strings.Repeat("1", 1_000_000)),
	}
	for _, text := range []string{
		`†(len(filter(†input.list, len(†input.text) > .x)))`, `†(count(†input.list, †input.text[-2:] == "x"))`,
		`†(len(map(†input.list, max(†input.list))))`, `†(len(map(†input.list, †input.text contains "x")))`,
		`†(len(map(†input.list, max(†input.nested))))`, `†(count(†input.list, max(†input.nested[0*1]) == 1))`,
		`†(count(†input.list, len(keys(†input.object)) == 0))`,
		`†(trim(†input.text, †input.pattern))`, `†(count(†input.list, upper(first(†input.large)) == "x"))`,
		`†(count(†input.list, †input.object == †input.object))`,
		`†(count(†input.list, †input.object in [†input.object]))`,
		`†(count(†input.list, string(†input.object) == "x"))`, `†(count(†input.list, †input.text matches "(é|éé)+$"))`,
		`†(len(map(†input.list, "x" matches (string(#index) + "{900}a{1000}"))))`,
		`†(map(†input.list, †input.named))`, `†(map(†input.list, ({(first(keys(†input.named))): 1})))`, `†(map(†input.list, †input.digits))`,
		`†(len(map(†input.list, [` + strings.Repeat("#,", 1000) + `])))`, `†(len(map(†input.list, ({` + strings.Repeat(`"a": #,`, 500) + `}))))`,
		`†(†input.text matches †input.pattern)`, `†(count(†input.list, "x" matches "(?:a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?){1000}$"))`,
	} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = e.Eval(context.Background(), func(path store.Path) (any, bool, bool, error) { return values[path.String()], true, false, nil })
		if err == nil || !strings.Contains(err.Error(), "past the budget") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestOutput_Paths holds protocol §4, "As an output path".
func TestOutput_Paths(t *testing.T) {
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
		if out, err := expr.ParseOutput(c.text); err == nil {
			got = strings.NewReplacer("{", "", "}", "").Replace(fmt.Sprint(out.Alternatives))
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

// TestOutput_Errors holds that what is no output path is refused where it is wrong.
func TestOutput_Errors(t *testing.T) {
	ofThree := "(†a || †b || †c)"
	for text, want := range map[string]string{
		`†a.x or †a.y`:      "in an output path write || for alternatives, not or\n    †a.x or †a.y\n         ^",
		`†a || (†b and †c)`: "in an output path write && for a fan-out, not and\n    †a || (†b and †c)\n              ^",
		`†a.x || len(†b)`:   "an output path is made of references, ||, && and parentheses only\n    †a.x || len(†b)\n            ^",
		`†a && b.c`:         "an output path is made of references, ||, && and parentheses only (a reference begins with †)\n    †a && b.c\n          ^",
		`†a["b"] && †a.b.c`: `†a.b and †a.b.c overlap: one result can't be written to both in "†a[\"b\"] && †a.b.c"`,
		`†a['b c'] || †a.b`: "write [\"b c\"] for the key in single quotes\n    †a['b c'] || †a.b\n       ^",
		"†" + ofThree + " && " + ofThree + " && " + ofThree + " && " + ofThree: "the output path has more than 64 alternatives\n" +
			"    †(†a || †b || †c) && (†a || †b || †c) && (†a || †b || †c) && (†a || †b || †c)\n" + strings.Repeat(" ", 62) + "^",
	} {
		if _, err := expr.ParseOutput(text); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	for n, wrong := range map[int]bool{64: false, 65: true} {
		if _, err := expr.ParseOutput(strings.TrimPrefix(strings.Repeat(" || †a", n), " || ")); (err != nil) != wrong {
			t.Errorf("%d alternatives: %v", n, err)
		}
	}
}

// TestSingleQuotes_EveryReader holds that whatever reads a path refuses a key in single quotes in
// the same words (protocol §2).
func TestSingleQuotes_EveryReader(t *testing.T) {
	for text, want := range map[string]string{
		`†state['a b']`: `write ["a b"] for the key in single quotes`, `†state.x['a'].y`: `write ["a"] for the key in single quotes`,
		`†state['it\'s "x"']`: `write ["it's \"x\""] for the key in single quotes`, `†state['a`: "a quoted key is not closed",
	} {
		_, path := store.ParsePath(text)
		_, input := expr.Parse(text)
		_, inside := expr.Parse("†(1 + " + text + ")")
		_, output := expr.ParseOutput(text + " || †a")
		_, named := expr.WithDaggers(text)
		for _, err := range []error{path, input, inside, output, named} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s\n got %v\nwant %s", text, err, want)
			}
		}
	}
}

// TestExpression_MissingIsLookedForOnce: what an expression can't do without is looked
// for at a cost like that of its length, however deep it nests (protocol §4).
func TestExpression_MissingIsLookedForOnce(t *testing.T) {
	text := "†input.later"
	for range 40 {
		text = "((" + text + ") + 1 && 1)"
	}
	e, err := expr.Parse("†" + text)
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	_, m, err := e.Eval(context.Background(), func(store.Path) (any, bool, bool, error) {
		looked++
		return nil, false, true, nil
	})
	if err != nil || m == nil || !m.Open || looked > 100 {
		t.Errorf("%+v, %v: it was looked for %d times", m, err, looked)
	}
}
