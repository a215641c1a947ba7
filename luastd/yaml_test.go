package luastd

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// TestYAMLRoundTrip writes random values, made of what YAML gives a meaning to,
// and reads them back.
func TestYAMLRoundTrip(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 20_000 {
		v := randomValue(random, 3)
		text := encodeYAML(v, func(int) bool { return false })
		back, _, err := decodeYAML(text)
		if err != nil || !reflect.DeepEqual(v, back) {
			t.Fatalf("%#v\nwritten %q\nread %#v %v", v, text, back, err)
		}
	}
}

var yamlPieces = []string{"a", "b", "Z", " ", "\n", ":", "- ", "#", "'", "\"", "\\", "\t", "|", ">", "&", "*", "!", "%", "@", "`", "{", "}", "[", "]", ",",
	"?", "0", "1", "e", "x", ".", "-", "+", "~", "null", "true", "yes", "on", "é", "\u2028", "\r", "<<", "=", "_", "2001-01-01", "---", "...", "\x01", "\x7f",
	"\u0085", "\ufeff", "😀", "\n\n", " \n", "\n ", "(", ")", "/", ";"}

func randomText(random *rand.Rand) string {
	var b strings.Builder
	for range random.Intn(5) {
		b.WriteString(yamlPieces[random.Intn(len(yamlPieces))])
	}
	return b.String()
}

func randomValue(random *rand.Rand, depth int) any {
	switch n := random.Intn(8); {
	case n < 4 || depth == 0:
		return randomText(random)
	case n == 4:
		return []any{nil, true, false, json.Number("12"), json.Number("-1.5"), json.Number("12345678901234567890"), json.Number("1e+300")}[random.Intn(7)]
	case n == 5:
		list := []any{}
		for range random.Intn(3) {
			list = append(list, randomValue(random, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range random.Intn(3) {
		object[randomText(random)] = randomValue(random, depth-1)
	}
	return object
}

// TestYAMLBombs holds documents that grow, or that the parser would take long
// over, to a second or so.
func TestYAMLBombs(t *testing.T) {
	repeat := func(n int, text func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(text(i))
		}
		return b.String()
	}
	laughs := "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for i := 1; i < 10; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	merges := "m0: &m0 {a: 1}\n"
	for i := 1; i < 60; i++ {
		merges += fmt.Sprintf("m%d: &m%d {<<: [*m%d, *m%d], k%d: [*m%d, *m%d]}\n", i, i, i-1, i-1, i, i-1, i-1)
	}
	const most = 1 << 20
	deepNames := ""
	for i := range 100 {
		deepNames += strings.Repeat(" ", i) + strings.Repeat("k", 900) + ":\n"
	}
	tests := map[string]string{
		"laughs":     laughs,
		"merges":     merges,
		"text":       "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a, ", 10_000) + "*a]\n",
		"names":      deepNames + repeat(most-150_000, func(i int) string { return fmt.Sprintf("%s%d: 1\n", strings.Repeat(" ", 100), i) }),
		"anchors":    strings.Repeat("&a\n", most/3),
		"tags":       strings.Repeat("!!x ", most/4),
		"open":       strings.Repeat("[", most),
		"maps":       strings.Repeat("{a: ", most/4),
		"dashes":     strings.Repeat("- ", most/2),
		"questions":  strings.Repeat("? ", most/2),
		"dash lines": repeat(most-2000, func(i int) string { return strings.Repeat(" ", i%1000) + "-\n" }),
		"long maps": repeat(most-100_000, func(i int) string {
			return fmt.Sprintf("m%d:\n", i) + repeat(90_000, func(i int) string { return fmt.Sprintf(" k%d: 1\n", i) })
		}),
		"one map": repeat(most, func(i int) string { return fmt.Sprintf("k%d: 1\n", i) }),
	}
	for name, text := range tests {
		start := time.Now()
		_, _, err := decodeYAML(text)
		if took := time.Since(start); err == nil || took > 20*time.Second { // minutes if it were not bounded
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
	for name, text := range map[string]string{
		"flow list": "[" + strings.Repeat("1,", most/4) + "1]",
		"records":   strings.Repeat("- name: foo bar\n  x: 12\n  y: [1, 2, 3]\n", most/80),
		"one map":   repeat(80_000, func(i int) string { return fmt.Sprintf("k%d: 1\n", i) }),
	} {
		start := time.Now()
		_, _, err := decodeYAML(text)
		if took := time.Since(start); err != nil || took > 20*time.Second { // minutes if it were not bounded
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
}

// TestYAMLEndsWithTheCall holds that a script does not wait for the parser once
// its time is over.
func TestYAMLEndsWithTheCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := &Env{Context: func() (context.Context, context.CancelFunc) { return ctx, func() {} }}
	L := lua.NewState()
	defer L.Close()
	L.SetGlobal("decode", L.NewFunction(func(L *lua.LState) int { return yamlDecode(env, L) }))
	L.SetGlobal("text", lua.LString("["+strings.Repeat("1,", 1<<19-2)+"1]"))
	if err := L.DoString("return decode(text)"); err == nil || !strings.Contains(err.Error(), "the script was interrupted") {
		t.Errorf("got %v", err)
	}
}

// TestYAMLColonsInFlow: between brackets a colon ends a name where a blank follows it, or
// quotes stand before it; elsewhere it is refused rather than read as what it is not.
func TestYAMLColonsInFlow(t *testing.T) {
	for text, want := range map[string]string{
		`{http://x: 1}`: `{"http://x":1}`, `{"a":1, 'b':[2]}`: `{"a":1,"b":[2]}`, `{a:[1], b: c:d}`: `{"a":[1],"b":"c:d"}`, `{a:, b: -1}`: `{"a":null,"b":-1}`,
		`{x:y: z}`: "", `{a:1}`: "", `{db:host: x}`: "", `[{a:"b"}]`: "", `k: {a:b}`: "", `{a: {b:-1}}`: "",
	} {
		v, _, err := decodeYAML(text)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "a blank follows the colon") {
				t.Errorf("%s: %v, %v", text, v, err)
			}
			continue
		}
		if got, _ := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%s is %s, %v, not %s", text, got, err, want)
		}
	}
}
