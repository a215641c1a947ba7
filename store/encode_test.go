package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"obelus/store"
)

// encoded is a value as encoding/json writes it, without HTML's escapes.
func encoded(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), err
}

// FuzzEncode holds that values are written as encoding/json writes them.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{
		"", "plain", "†state", "a\"b\\c", "\x00\x01\b\f\n\r\t\x1f\x7f", "\u2028\u2029\ufffd", "\xff\xc3", "<>&", "\U0001f600", "1e400", "-0", "01", "1.", ".5", "1e+", "-", "12E-3",
	} {
		f.Add(text, "1.50")
		f.Add("key", text)
	}
	f.Fuzz(func(t *testing.T, text, number string) {
		values := []any{text, map[string]any{text: nil, "b": true, "": 1}, []any{text, int64(-3), 2.5, 1e-7, 1e21, math.Copysign(0, -1), 123456.789, float64(len(text)) / 7, map[string]any{}, []any{}, map[string]any(nil), []any(nil), []string{text}}}
		if _, err := encoded(json.Number(number)); err == nil {
			values = append(values, json.Number(number), map[string]any{"n": json.Number(number)})
		}
		for _, v := range values {
			want, err := encoded(v)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(store.EncodeJSON(v)); got != want {
				t.Fatalf("%#v is written %s, not %s", v, got, want)
			}
		}
	})
}

// TestPath_AsJSON: a path is its text, wherever it stands, and the zero path an empty
// one.
func TestPath_AsJSON(t *testing.T) {
	type places struct {
		At   store.Path
		None store.Path
		Left store.Path `json:",omitzero"`
		By   map[store.Path]int
	}
	given := places{At: store.MustParsePath(`†a["b"].0`), By: map[store.Path]int{store.MustParsePath(`†a["x y"]`): 1}}
	const want = `{"At":"†a.b.0","None":"","By":{"†a[\"x y\"]":1}}`
	text, err := encoded(given)
	if err != nil || text != want {
		t.Errorf("%s, %v, not %s", text, err, want)
	}
	if v, err := store.FromGo(given, ""); err != nil || v.(map[string]any)["At"] != "†a.b.0" {
		t.Errorf("%v, %v", v, err)
	}
	var read places
	if err := json.Unmarshal([]byte(text), &read); err != nil || read.At != given.At || !read.None.IsZero() || read.By[store.MustParsePath(`†a["x y"]`)] != 1 {
		t.Errorf("%+v, %v", read, err)
	}
	err = json.Unmarshal([]byte(`{"At": "†a..b"}`), &read)
	if _, is := errors.AsType[*store.PathError](err); !is {
		t.Errorf("a path that is none gives %v", err)
	}
}

// TestMessage_AsJSON: a message is written as the log shows it, whether it is a copy or
// not.
func TestMessage_AsJSON(t *testing.T) {
	m := store.Message{Seq: 1, Type: store.TypeData, Kind: "state", Data: map[string]any{"a": true}, HasData: true}
	const want = `{"seq":1,"date":"0001-01-01T00:00:00.000Z","type":"data","kind":"state","data":{"a":true}}`
	for _, v := range []any{m, &m} {
		if text, err := encoded(v); err != nil || text != want {
			t.Errorf("%s, %v, not %s", text, err, want)
		}
	}
}
