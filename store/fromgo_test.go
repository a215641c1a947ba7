package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
)

type line struct {
	Name  string  `json:"name"`
	Price float64 `json:"price"`
	Note  *string `json:"note,omitempty"`
	Watch any     `json:"watch,omitempty"`
}

type order struct {
	line
	Items []line         `json:"items"`
	ByDay map[int]string `json:"by-day,omitempty"`
	Own   own            `json:"own"`
	Skip  chan int       `json:"-"`
}

// own writes itself.
type own string

func (o own) MarshalJSON() ([]byte, error) {
	if o == "broken" {
		return nil, errors.New("it is broken")
	}
	return []byte(`{"own": [1.50]}`), nil
}

type plainText string

// weird writes itself where it has an address, whatever it holds.
type weird struct{ F any }

func (w *weird) MarshalJSON() ([]byte, error) {
	if w.F == nil {
		return nil, errors.New("it is empty")
	}
	return []byte(`"\ufffd"`), nil
}

// sparse has what encoding/json leaves out.
type sparse struct {
	one
	other
	Text string `json:"text"`
}

// one and other have a field of the same name: neither is written.
type (
	one   struct{ Same float64 }
	other struct{ Same float64 }
)

// TestFromGo_AsTheLog holds every value against what is read again
// after it was written.
func TestFromGo_AsTheLog(t *testing.T) {
	day := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	for _, v := range []any{
		nil, true, "text", json.Number("1.50"), json.Number(""), 7, int8(-3), int64(math.MaxInt64), uint64(math.MaxUint64), 2.0, 1e21, 1e-7, math.Copysign(0, -1), float32(0.1),
		[]any{}, map[string]any{}, []any(nil), map[string]any(nil), (*line)(nil), []string(nil), []int{1, 2}, [2]bool{true}, []byte("bytes"), []string{"a", "b"},
		map[string]int{"a": 1}, map[int]string{2: "b"}, map[plainText]any{"k": plainText("v")}, []map[string]any{{"a": 1}}, map[string][]float64{"a": {1, 2.5}},
		order{line: line{Name: "top", Price: 1}, Items: []line{{Name: "a"}}, ByDay: map[int]string{1: "x"}}, &order{}, day, &day, time.Second,
		json.RawMessage(`{"n": 12345678901234567890.10, "t": "\ufffd"}`), own("x"), "\ufffd", plainText("\ufffd"),
		[]weird{{F: func() {}}}, &weird{"\xff"}, &[1]weird{{F: 1}}, &struct{ W weird }{weird{F: make(chan int)}}, []*weird{nil, {F: 1}}, sparse{one{math.NaN()}, other{}, "\ufffd"},
		map[string]any{"same": "text", "deep": []any{map[string]any{"n": 5, "s": []string{"x"}}}},
	} {
		got, err := store.FromGo(v, "result")
		if err != nil {
			t.Errorf("%#v: %s", v, err)
			continue
		}
		want, err := store.DecodeJSON(store.EncodeJSON(v))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%#v (-log +got):\n%s", v, diff)
		}
	}
}

// TestFromGo_ChangesNothing holds that the caller's value stays as it is, and
// that JSON's own is not copied.
func TestFromGo_ChangesNothing(t *testing.T) {
	given := map[string]any{"list": []any{1, map[string]any{"n": 2}}, "same": map[string]any{"x": "y"}}
	if _, err := store.FromGo(given, ""); err != nil || given["list"].([]any)[0] != 1 || given["list"].([]any)[1].(map[string]any)["n"] != 2 {
		t.Errorf("%v, and %v was given", err, given)
	}
	json := map[string]any{"a": []any{"b", json.Number("1"), nil, map[string]any{"c": false}}, "d": strings.Repeat("†", 50)}
	if n := testing.AllocsPerRun(10, func() { _, _ = store.FromGo(json, "result") }); n != 0 {
		t.Errorf("a look at a JSON value allocates %v times", n)
	}
	same, err := store.FromGo(json, "")
	if same.(map[string]any)["mark"] = true; err != nil || json["mark"] == nil {
		t.Errorf("%v: it was copied", err)
	}
}

func TestFromGo_ErrorsHaveAPlace(t *testing.T) {
	nan, inf, circle, around := math.NaN(), math.Inf(-1), map[string]any{}, &line{}
	circle["a"], around.Watch = []any{circle}, around
	for _, c := range []struct {
		v    any
		want string
	}{
		{nan, "result: NaN is not a JSON number"},
		{map[string]any{"items": []any{1, 2, 3, map[string]any{"price": nan}}}, "result.items[3].price: NaN is not a JSON number"},
		{map[string]any{"a key": inf}, `result["a key"]: infinity is not a JSON number`},
		{order{Items: []line{{}, {Price: nan}}}, "result.items[1].price: NaN is not a JSON number"},
		{&order{line: line{Price: nan}}, "result.price: NaN is not a JSON number"},
		{map[string][]float32{"b": {1, float32(nan)}, "a": nil}, "result.b[1]: NaN is not a JSON number"},
		{line{Watch: func() {}}, "result.watch: a function is not a JSON value"},
		{[]any{make(chan int)}, "result[0]: a channel is not a JSON value"},
		{map[string]complex128{"z": 1}, "result.z: a complex number is not a JSON number"},
		{json.Number("abc"), `result: "abc" is not a JSON number`},
		{[]json.Number{"1", "0x1"}, `result[1]: "0x1" is not a JSON number`},
		{"\xff", "result: the text is not valid UTF-8"},
		{map[string]any{"\xff": 1}, `result: the key "\xff" is not valid UTF-8`},
		{map[plainText]int{"\xff": 1}, `result: the key "\xff" is not valid UTF-8`},
		{order{Items: []line{{Name: "a\xc3"}}}, "result.items[0].name: the text is not valid UTF-8"},
		{map[string]own{"o": "broken"}, "result.o: it can't be written as JSON: it is broken"},
		{json.RawMessage(`{"a"`), "result: it can't be written as JSON: unexpected end of JSON input"},
		{json.RawMessage("\"\xff\""), "result: what it writes itself as is not valid UTF-8"},
		{[]weird{{F: 1}, {}}, "result[1]: it can't be written as JSON: it is empty"},
		{map[string]weird{"a": {F: func() {}}}, "result.a.F: a function is not a JSON value"},
		{[]any{[]weird{{F: "\xff"}}, weird{"\xff"}}, "result[1].F: the text is not valid UTF-8"},
		{sparse{one{nan}, other{}, "\xff"}, "result.text: the text is not valid UTF-8"},
		{map[bool]int{true: 1}, "result: the keys of an object are text"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "result: it can't be written as JSON: "},
		{circle, "result.a[0].a[0].a[0]"},
		{around, "result.watch.watch.watch"},
		{[]any{[]*line{around}}, "result[0][0].watch.watch"},
		{nested(257), "nested deeper than 256"},
		{[]string{"\xff"}, "result[0]: the text is not valid UTF-8"},
	} {
		_, err := store.FromGo(c.v, "result")
		if text := fmt.Sprint(err); !strings.Contains(text, c.want) || goText.MatchString(text) || len(text) > 200 {
			t.Errorf("it says %q, not %q", text, c.want)
		}
	}
	if _, err := store.FromGo(map[string]any{"a": nan}, ""); fmt.Sprint(err) != "a: NaN is not a JSON number" {
		t.Error(err)
	}
	if _, err := store.FromGo(nested(256), ""); err != nil {
		t.Error(err)
	}
}

// nested is an array in an array, so many in all.
func nested(n int) any {
	var v any
	for range n {
		v = []any{v}
	}
	return v
}

// FuzzFromGo holds that JSON values are taken as they are.
func FuzzFromGo(f *testing.F) {
	for _, text := range []string{`{"a": [1, null, "x"]}`, `1e400`, `"\ufffd"`, `[]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := store.DecodeJSON([]byte(text))
		if err != nil {
			t.Skip()
		}
		got, err := store.FromGo(v, "v")
		if diff := cmp.Diff(v, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
		var anything any // numbers are floats
		if json.Unmarshal([]byte(text), &anything) != nil {
			t.Skip()
		}
		got, err = store.FromGo(map[string]any{"v": anything}, "v")
		if err == nil {
			again, wrong := store.DecodeJSON(store.EncodeJSON(map[string]any{"v": anything}))
			err = wrong
			if diff := cmp.Diff(again, got); diff != "" {
				t.Fatal(diff)
			}
		}
		if err != nil && !strings.Contains(err.Error(), "nested deeper") {
			t.Fatal(err)
		}
	})
}
