package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"strings"
	"testing"
)

func TestWire(t *testing.T) {
	values := []any{
		nil, true, false, "", "ä\x00\xff", json.Number("-1.50"), json.Number("12345678901234567890"), []any{}, map[string]any{},
		strings.Repeat("long ", 100_000),
		map[string]any{"a": []any{nil, json.Number("1"), map[string]any{"": "x"}}, "b": true},
	}
	var frames bytes.Buffer
	for _, v := range values {
		if err := send(&frames, v); err != nil {
			t.Fatal(err)
		}
	}
	all := bytes.Clone(frames.Bytes())
	r := bufio.NewReader(&frames)
	for _, v := range values {
		if got, err := receive(r); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("got %#v %v, want %#v", got, err, v)
		}
	}
	random := rand.New(rand.NewSource(1))
	for range 20_000 { // what is broken is refused, or another value
		broken := bytes.Clone(all[:200])
		broken[random.Intn(len(broken))] = byte(random.Intn(256))
		reader := wireReader{text: string(broken[random.Intn(len(broken)):])}
		_, _ = reader.value(0)
	}
	deep := wireReader{text: strings.Repeat(string(wireArray)+"\x01", 1<<20)}
	if _, err := deep.value(0); err == nil {
		t.Error("a million levels were read")
	}
	if v, err := (&wireReader{text: string(appendWire(nil, []any{7, int64(-8), 0.5}))}).value(0); err != nil || !reflect.DeepEqual(v, []any{json.Number("7"), json.Number("-8"), json.Number("0.5")}) {
		t.Errorf("got %#v %v", v, err)
	}
}
