package journal_test

import (
	"strings"
	"testing"

	"obelus/engine/journal"
	"obelus/store"
)

// TestHold_With: a correction takes the place of what stands at its key, and of nothing else.
func TestHold_With(t *testing.T) {
	object := func(text string) map[string]any {
		v, err := store.DecodeJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v.(map[string]any)
	}
	hold := journal.Hold{Arguments: object(`{"v": {"force": true, "ids": [1, {"n": 2}]}, "n": 7}`)}
	for _, test := range []struct{ set, want string }{
		{`{}`, `null`},
		{`{"n": 8}`, `{"n":8,"v":{"force":true,"ids":[1,{"n":2}]}}`},
		{`{"v": {}}`, `{"n":7,"v":{}}`},
		{`{"v": {"ids": {"0": 9}}}`, `{"n":7,"v":{"ids":{"0":9}}}`},
		{`{"v.ids.0": 9}`, `{"n":7,"v":{"force":true,"ids":[9,{"n":2}]}}`},
		{`{"v.ids.1.n": {}}`, `{"n":7,"v":{"force":true,"ids":[1,{"n":{}}]}}`},
		{`{"v.ids.2": 3}`, `{"n":7,"v":{"force":true,"ids":[1,{"n":2},3]}}`},
		{`{"v.ids.3": 4, "v.ids.2": 3}`, `{"n":7,"v":{"force":true,"ids":[1,{"n":2},3,4]}}`},
		{`{"v.ids.9": 3}`, "v.ids.9: in an array of 2 only an index from 0 to 2 can be corrected, not 9"},
		{`{"v.ids.x": 3}`, "v.ids.x: in an array of 2 only an index from 0 to 2 can be corrected, not x"},
		{`{"v..x": 3}`, "v..x: a key has an empty part"},
		{`{"v` + strings.Repeat(".a", 300) + `": 3}`, "v" + strings.Repeat(".a", 15) + ".…: it leads more than 256 deep"},
		{`{"dotted.name": 3}`, `{"dotted.name":3,"n":7}`},
		{`{"v.new.a": 1, "v.new.b": 2}`, `{"n":7,"v":{"force":true,"ids":[1,{"n":2}],"new":{"a":1,"b":2}}}`},
		{`{"v.ids": [], "v": {"force": false}}`, `{"n":7,"v":{"force":false,"ids":[]}}`},
		{`{"n.x": 1}`, `{"n":{"x":1},"v":{"force":true,"ids":[1,{"n":2}]}}`},
	} {
		hold := hold
		if strings.Contains(test.set, "dotted") {
			hold.Arguments = object(`{"dotted.name": 1, "n": 7}`)
		}
		before := string(store.EncodeJSON(map[string]any(hold.Arguments)))
		arguments, err := hold.With(object(test.set))
		got := string(store.EncodeJSON(arguments))
		if err != nil {
			got = err.Error()
		} else if arguments == nil {
			got = "null"
		}
		if got != test.want {
			t.Errorf("%s: %s, not %s", test.set, got, test.want)
		}
		if after := string(store.EncodeJSON(map[string]any(hold.Arguments))); after != before {
			t.Fatalf("%s changed what is held to %s", test.set, after)
		}
	}
}
