package expr_test

import (
	"strings"
	"testing"
	"time"

	"obelus/engine/expr"
	"obelus/store"
)

// TestTexts holds the functions that make texts of values and values of texts.
func TestTexts(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`†(format(1234567.891, "#,##0.00"))`, `"1,234,567.89"`},
		{`†(format(999, "#,##0"))`, `"999"`},
		{`†(format(1000, "#,##0"))`, `"1,000"`},
		{`†(format(†state.total, "0.00"))`, `"120.00"`},
		{`†(format(†state.rate, "0.##"))`, `"1.1"`},
		{`†(format(2.0, "0.0#"))`, `"2.0"`},
		{`†(format(7, "000"))`, `"007"`},
		{`†(format(1.005, "0.00"))`, `"1.01"`}, // as it is written, not as it is stored
		{`†(format(-2.5, "0"))`, `"-3"`},
		{`†(format(-0.001, "0.00"))`, `"0.00"`},
		{`†(format(0.1234, "0.0%"))`, `"12.3%"`},
		{`†(format(0.07, "0 %"))`, `"7 %"`},
		{`†(format(†state.min, "#,##0"))`, `"-9,223,372,036,854,775,808"`},
		{`†(format(†state.big, "0"))`, `"123456789012345678901234567890"`},
		{`†(format(1e21, "0"))`, `"1000000000000000000000"`},
		{`†(format(1e-7, "0.0000000"))`, `"0.0000001"`},
		{`†("sum: " + format(sum(†state.list), "0.0"))`, `"sum: 6.0"`},
		{`†(format("2026-02-03T04:05:06.789+01:00", "%A, %e.%m.%Y %H:%M:%S.%L %z week %V"))`, `"Tuesday,  3.02.2026 04:05:06.789 +0100 week 06"`},
		{`†(format("2026-02-03", "%d.%m.%y, 100 %%"))`, `"03.02.26, 100 %"`},
		{`†(map(†state.list, format(#, "00")))`, `["03","01","02"]`},
		{`†(format(†state.nope, "0"))`, `missing: [†state.nope]`},
		{`†(toJSON(†state.user.note))`, `"null"`},
		{`†(toJSON(†state.empty))`, `"\"\""`},
		{`†(toJSON(†state.list))`, `"[3,1,2]"`},
		{`†(toJSON({"b": 1.0, "a": "†"}))`, `"{\"a\":\"†\",\"b\":1}"`},
		{`†(fromJSON("{\"a\": [1, 2.5, null]}"))`, `{"a":[1,2.5,null]}`},
		{`†(fromJSON("{\"a\": [1, 2]}").a[1] + 1)`, `3`},
		{`†(fromJSON(toJSON(†state.user)) == †state.user)`, `true`},
		{`†(uniq([3, 1, 3, "3", 1.0, null, null, [1], [1], {"a": 1}, {"a": 1}]))`, `[3,1,"3",null,[1],{"a":1}]`},
		{`†(uniq([]))`, `[]`},
	} {
		if got := evaluate(t, c.text); got != c.want {
			t.Errorf("%s is %s, not %s", c.text, got, c.want)
		}
	}
	for text, want := range map[string]string{
		`†(format("1", "0"))`:            "format takes a number or a date such as 2026-01-31 or 2026-01-31T12:00:00Z, not the text \"1\"",
		`†(format(true, "0"))`:           "format takes a number or a date, not",
		`†(format("2026-02-03", "0"))`:   `format of a date takes a pattern such as "%d.%m.%Y"`,
		`†(format("2026-02-03", "%-d"))`: `format: unknown %- in the layout`,
		`†(format("2026-02-30", "%d"))`:  "format takes a number or a date",
		`†(format(1))`:                   `format takes a number and a pattern such as "0.00", or a date and one such as "%d.%m.%Y"`,
		`†(format(1, "YYYY"))`:           `format takes a pattern: zeros, perhaps`,
		`†(format(1, "0."))`:             `format takes a pattern: zeros, perhaps`,
		`†(format(1, "#"))`:              `format takes a pattern: zeros, perhaps`,
		`†(format(1/0, "0"))`:            "format takes a finite number",
		`†(format(fromJSON(replace(replace(replace("1111111111", "1", "1111111111"), "1", "1111111111"), "1", "1111111111")), "0"))`: "format takes a number of at most",
		`†(format(1, 2))`:              `format takes a pattern: zeros`,
		`†(fromJSON("{"))`:             "fromJSON takes a string of JSON: ",
		`†(fromJSON(1))`:               "fromJSON takes a string, not a number",
		`†(toJSON())`:                  "toJSON takes one value",
		`†(uniq(1))`:                   "uniq takes an array, not a number",
		`†(uniq())`:                    "uniq takes one array",
		`†(formt(1, "0"))`:             `unknown function formt (did you mean "format"?)`,
		`†(now())`:                     "an expression gives the same whenever it is evaluated",
		`†(date("2026-01-01").Year())`: "values have no methods",
		`†(repeat("a", 3))`:            "the function repeat is not allowed (allowed are ",
	} {
		if got := evaluate(t, text); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
			t.Errorf("%s is %s, which does not say: %s", text, got, want)
		}
	}
}

// TestFindLast holds that what is done with an element that was found from the end is done with it:
// the library's own function left operands behind.
func TestFindLast(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`†(findLast(†state.list, # > 1))`, `2`},
		{`†(findLast(†state.list, # > 1) + 1)`, `3`},
		{`†(findLast(†state.list, # > 1) + findLast(†state.list, # > 2))`, `5`},
		{`†(findLast(†state.list, # > 1) == findLast(†state.list, # < 3))`, `true`},
		{`†(findLast(†state.list, # > 5))`, `null`},
		{`†(findLast(†state.items, .price > 1).n)`, `"b"`}, // the last has no price
		{`†(findLast(†state.items, .n == "c").price)`, `missing: []`},
		{`†(findLastIndex(†state.list, # > 1) + 1)`, `3`},
		{`†(findLastIndex([], true))`, `null`},
		{`†([findLastIndex(†state.list, # == 3), findLast(†state.list, # == 1), 7])`, `[0,1,7]`},
		{`†(map(†state.list, #index + #))`, `[3,2,4]`},
	} {
		if got := evaluate(t, c.text); got != c.want {
			t.Errorf("%s is %s, not %s", c.text, got, c.want)
		}
	}
	for text, want := range map[string]string{
		`†(findLast(†state.total, # > 1))`:            "findLast takes an array, not a number",
		`†(findLast(†state.list, # + 1))`:             "a predicate must be true or false, not a number",
		`†(findLast(†state.list, any(†state.list)))`:  "error",
		`†(findLastIndex(†state.user, # == "Ann"))`:   "findLastIndex takes an array, not an object",
		`†(findLast(†state.list, find([1], # == 1)))`: "predicates do not nest",
	} {
		if got := evaluate(t, text); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
			t.Errorf("%s is %s, which does not say: %s", text, got, want)
		}
	}
}

// TestPredicates_LeaveNothing holds that no function with a predicate leaves an operand to the
// operation that it is part of.
func TestPredicates_LeaveNothing(t *testing.T) {
	for _, name := range []string{"all", "any", "count", "filter", "find", "findIndex", "findLast", "findLastIndex", "groupBy", "map", "none", "one", "sortBy", "sum"} {
		predicate := "# > 1"
		if name == "sum" || name == "sortBy" {
			predicate = "#"
		}
		text := "string(" + name + "(†state.list, " + predicate + "))"
		once := strings.Trim(evaluate(t, "†("+text+")"), `"`)
		if got := evaluate(t, "†("+text+" + "+text+")"); once == "" || got != `"`+once+once+`"` {
			t.Errorf("%s gives %s, and twice %s", text, once, got)
		}
	}
}

// TestTexts_Budget holds that texts are charged for: an expression can't make many long ones.
func TestTexts_Budget(t *testing.T) {
	defer expr.BoundEvaluation(10 * time.Minute)()
	values := map[string]any{"†many": make([]any, 100_000), "†text": strings.Repeat("x", 100_000), "†json": "[" + strings.Repeat("1,", 50_000) + "1]"}
	for _, text := range []string{
		`†(map(†many, toJSON(†text)))`, `†(map(†many, uniq([†text])))`, `†(map(†many, fromJSON(†json)))`,
		`†(map(†many, format(1, "` + strings.Repeat("0", 3900) + `")))`,
	} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = e.Eval(t.Context(), func(path store.Path) (any, bool, bool, error) { return values[path.String()], true, false, nil })
		if err == nil || !strings.Contains(err.Error(), "past the budget") {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}
