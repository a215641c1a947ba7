package engine_test

import (
	"testing"

	"obelus/engine"
	"obelus/store"
)

func TestOverlay(t *testing.T) {
	value := func(text string) any {
		v, err := store.DecodeJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, test := range []struct{ a, b, want string }{
		{`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"c":4},"e":5}`, `{"a":1,"b":{"c":4,"d":3},"e":5}`},
		{`[1,{"a":2}]`, `{"1":{"b":3},"2":4}`, `[1,{"a":2,"b":3},4]`},
		{`[]`, `{"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"10":10}`, `[0,1,2,3,4,5,6,7,8,9,10]`},
		{`[]`, `{"1":1}`, `{"1":1}`},
		{`[1]`, `{"0":2,"x":3}`, `{"0":2,"x":3}`},
		{`[1]`, `{"00":2}`, `{"00":2}`},
		{`[1]`, `[2,3]`, `[2,3]`},
		{`[1]`, `{}`, `[1]`},
		{`{"a":1}`, `null`, `null`},
	} {
		if got := string(store.EncodeJSON(engine.Overlay(value(test.a), value(test.b)))); got != test.want {
			t.Errorf("%s over %s is %s, not %s", test.b, test.a, got, test.want)
		}
	}
}
