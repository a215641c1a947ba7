package expr_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"obelus/engine/expr"
	"obelus/store"
)

// goText is what no text for people has of Go, unless they wrote it themselves.
var goText = regexp.MustCompile(`runtime error|reflect|nil pointer|goroutine \d|interface|map\[|\[\]|\bnil\b|0xc0[0-9a-f]{8}|%!|\.go:\d|float64|int64|json\.|store\.|engine\.|expr\.|(?i)panic`)

// placed holds that an expression is refused with a place in it and in words.
func placed(t *testing.T, text string, err error) {
	t.Helper()
	var bad *expr.Error
	if !errors.As(err, &bad) {
		t.Fatalf("%q: an error without a place: %v", text, err)
	}
	if bad.Column < 0 || bad.Column > utf8.RuneCountInString(text)+1 {
		t.Fatalf("%q: column %d", text, bad.Column)
	}
	if m := goText.FindString(bad.Message); m != "" && !strings.Contains(text, m) || bad.Message == "" {
		t.Fatalf("%q: it shows Go (%s): %s", text, m, bad.Message)
	}
}

// FuzzExpr holds that an expression is refused with its place or gives JSON,
// and gives it again; and that a path is one, which reads that path alone.
func FuzzExpr(f *testing.F) {
	for _, text := range []string{
		`†state.user.name`, `†state.user["first-name"] || "x"`, `†((†state.nope || †input.name) && †state.total)`,
		`†input.amount * 1.2 + 3 ** 2`, `†state.total > 100 ? †state.rate : †state.nope`, `†(filter(†state.items, .price > 10))`,
		`†(map(†state.list, # * #index))`, `†state.list[†state.i]`, `†state.list[1:]`, `†(groupBy(†state.items, .n))`, `†({"n": †input.name}.n)`,
		`†(sum(†state.list) / 0)`, `†(1 % 0)`, `†state.user?.nope?.x ?? 1`, `†(join(†state.words, "-"))`, `†(replace("a-b", "-", "+"))`,
		`†(concat(†state.list, [9, -1.5e300]))`, `†(9223372036854775807 + 1)`, `†input.name matches "("`, `†(split(†input.name, ""))`,
		`†(sort(†state.items))`, `†(find(†state.items, .n == †state.nope))`, `†(take(†state.list, -1))`, `†(†state.big + 1)`, `†(int("x"))`,
		`†(keys(†state.user))`, `†("a" in †state.user)`, `†state.a /* † */ + 1`, "†(`†`)", `†(not †state.flag)`, `†a ||| †b`, `†`, `†(`, `††`, "†a\n+", `†(string(†state))`,
		`†(†input.name[1:-1])`, `†(null ?? -†state.max)`, `†(2 ** †state.i)`, `†(median(†state.list, †state.max / -1))`, `†(abs(†state.min) % 3)`, `†([round(0.5), †state.odd] == [†state.float])`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := expr.Parse(text)
		if path, noPath := store.ParsePath(text); noPath == nil && len(text) <= expr.MaxExpression {
			if err != nil || !slices.Equal(parsed.Reads(), []store.Path{path}) {
				t.Fatalf("the path %s is no expression that reads it: %v", path, err)
			}
		}
		if err != nil {
			placed(t, text, err)
			return
		}
		look := lookup(t)
		v, missing, err := parsed.Eval(context.Background(), look)
		switch {
		case err != nil:
			placed(t, text, err)
			return
		case missing != nil:
			for _, path := range missing.Paths {
				if !slices.Contains(parsed.Reads(), path) {
					t.Fatalf("%q lacks %s, which it does not read", text, path)
				}
			}
			return
		}
		encoded := store.EncodeJSON(v)
		if _, err := store.DecodeJSON(encoded); err != nil && !strings.Contains(err.Error(), "nested deeper") {
			t.Fatalf("%q gives %s: %v", text, encoded, err)
		}
		again, _, err := parsed.Eval(context.Background(), look)
		if err != nil || string(store.EncodeJSON(again)) != string(encoded) {
			t.Fatalf("%q gives %s, and then %v, %v", text, encoded, again, err)
		}
	})
}

// FuzzOutput holds that an output path is its alternatives: written out, they
// parse to themselves.
func FuzzOutput(f *testing.F) {
	for _, text := range []string{
		`†a.x`, `†a.x || †a.y`, `†a.x && †b.x`, `(†a.x || †a.y) && †a.log`, `†((†a.x || †a.y) && †a["l og"])`, `†a.x || †a.y && †a[0]`,
		`†a.x or †b`, `†a + 1`, `††a`, `(†a||†b)&&(†a||†b)&&(†a||†b)&&(†a||†b)&&(†a||†b)&&(†a||†b)&&(†a||†b)`, `†a /* c */ || †b`, `†a.b[†c]`, ``, `†`, `a`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		output, err := expr.ParseOutput(text)
		if err != nil {
			placed(t, text, err)
			return
		}
		alternatives := make([]string, len(output.Alternatives))
		for i, paths := range output.Alternatives {
			texts := make([]string, len(paths))
			for n, path := range paths {
				texts[n] = path.String()
			}
			alternatives[i] = strings.Join(texts, " && ")
		}
		written := strings.Join(alternatives, " || ")
		if len(written) > expr.MaxExpression {
			return
		}
		again, err := expr.ParseOutput(written)
		if err != nil || !slices.EqualFunc(again.Alternatives, output.Alternatives, slices.Equal[[]store.Path]) {
			t.Fatalf("%q is %q, which is %v, %v", text, written, again, err)
		}
	})
}
