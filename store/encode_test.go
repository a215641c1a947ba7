package store_test

import (
	"bytes"
	"encoding/json"
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
