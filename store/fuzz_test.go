package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
)

// goText is what no text for people has of Go, unless they wrote it themselves.
var goText = regexp.MustCompile(`runtime error|reflect|nil pointer|goroutine \d|interface|map\[string|0xc0[0-9a-f]{8}|%!|\.go:\d|float64|int64|json\.|store\.|strconv|parsing time`)

// FuzzPath holds that a path's text names it again, that its parts make it up
// again, and that what is none is refused with a place in it.
func FuzzPath(f *testing.F) {
	for _, text := range []string{
		"†state", "†state.user.name", "†state.items.0", "†state.items[0]", `†state["a key"].b`, `†état.ключ.名`, `†a[""]`,
		`†a["\"].x"]`, `†a["\u2020"]`, `†a["\ud83d"]`, `†a["<&>"]`, `†a["first-name"][12].x_1`, "†a.00[007]", "†", "†a.", "†a[", "†a[12", `†a["b`, `†a["b"`, `†a["b"x]`, "a.b", "††a", `†a['b c']`, `†a['\'"\"']`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := store.ParsePath(text)
		if err != nil {
			var bad *store.PathError
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(text) || bad.Message == "" || goText.MatchString(bad.Message) {
				t.Fatalf("%q is refused by %#v", text, err)
			}
			return
		}
		if again, err := store.ParsePath(path.String()); err != nil || again != path {
			t.Fatalf("%q is %q, which is %q, %v", text, path, again, err)
		}
		rebuilt, prefixes := store.KindPath(path.Kind()), path.Prefixes()
		for i, segment := range path.Segments() {
			if prefixes[i] != rebuilt || !rebuilt.Contains(path) {
				t.Fatalf("prefix %d of %s is %s, not %s", i, path, prefixes[i], rebuilt)
			}
			rebuilt = rebuilt.Child(segment)
		}
		if rebuilt != path || prefixes[len(prefixes)-1] != path {
			t.Fatalf("%s is put together as %s, with the prefixes %v", path, rebuilt, prefixes)
		}
		if v, ok := store.Dig(store.Wrap(path, "x"), path); !ok || v != "x" {
			t.Fatalf("what is wrapped at %s is not found there", path)
		}
	})
}

// FuzzMessage holds that messages are refused in words, and that what is printed
// of one is taken back as the same message.
func FuzzMessage(f *testing.F) {
	for _, text := range []string{
		`{"type":"data","data":1.50}`,
		`{"type":"data","kind":"user","data":{"a":[null,true,"†x"]},"schema":{"type":"object"},"description":"d","_instance":"①"}`,
		`{"type":"state","currentUser":{"id":1}}`,
		`{"type":"state","state":{"a":1},"schema":true}`,
		`{"type":"input","schema":{}}`,
		`{"type":"tool","tool":{"greet":{"properties":{}}}}`,
		`{"type":"plan","plan":[{"_tool":"x"}],"mode":"lazy"}`,
		`{"type":"system","message":"m"}`, `{"type":"text","text":"t"}`, `{"type":"meta","meta":null}`,
		`{"type":"data","data":{"a":{"b":1}},"_call":{"_tool":"t","_outputPath":"†data.a.b || †data.c"},"_date":"2025-10-26T12:00:00Z","_outputMethod":"push"}`,
		`{"type":"data","data":{"a":1},"path":"†data.a","_call":{},"date":"2025-10-26T12:00:00.123456Z","seq":3,"context":"c","call":"1.1"}`,
		`{"type":"data","data":1,"date":"9999-12-31T23:59:59-23:00"}`,
		`{"type":"data","data":1,"date":"0000-01-01T00:00:00+23:00"}`,
		`[{"type":"state","a":1},{"type":"state","a":1e400}]`,
		"{\"type\":\"text\",\"text\":\"a\"}\n{\"type\":\"text\",\"text\":\"b\"}",
		`{"type":"state","data":1,"state":2}`, `{`, `[]`, `null`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		messages, err := store.ParseMessages(text)
		if err != nil {
			if m := goText.FindString(err.Error()); m != "" && !bytes.Contains(text, []byte(m)) && !bytes.ContainsAny(text, `%\`) {
				t.Fatalf("%q: it shows Go (%s): %v", text, m, err)
			}
			return
		}
		for _, m := range messages {
			if err := store.CheckDepth(m.Data.Value); err != nil {
				t.Fatalf("its data is taken, and could not be read again: %v", err)
			}
			if err := m.Check(); err != nil {
				t.Fatalf("it is taken, and could not be given as it is: %v", err)
			}
			printed, err := json.Marshal(&m)
			if err != nil {
				t.Fatal(err)
			}
			v, err := store.DecodeWithin(printed, store.MaxDepth+1)
			if err != nil {
				t.Fatalf("%s: %v", printed, err)
			}
			again, err := store.ParseMessage(v)
			if err != nil {
				t.Fatalf("%s is not taken back: %v", printed, err)
			}
			m.Date = m.Date.Truncate(time.Millisecond)
			if diff := cmp.Diff(m, again, cmp.Comparer(func(a, b store.Path) bool { return a == b })); diff != "" {
				t.Fatalf("%s (-was +is):\n%s", printed, diff)
			}
		}
	})
}
