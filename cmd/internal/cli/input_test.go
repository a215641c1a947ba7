package cli

import (
	"context"
	"strings"
	"testing"

	"obelus/store"
)

// TestReadInputs_Merged holds what several -i come to: objects are merged, what a dotted key leads
// to is put there, and nothing that was given is lost.
func TestReadInputs_Merged(t *testing.T) {
	for _, test := range []struct{ inputs, want string }{
		{`a=1 b.c:=2 b.d:=[3]`, `{"a":"1","b":{"c":2,"d":[3]}}`},
		{`{"a":1,"b":{"c":2,"d":3}} {"b":{"c":4},"e":5}`, `{"a":1,"b":{"c":4,"d":3},"e":5}`},
		{`a:={"x":1} a:={"y":2} a.z:=3`, `{"a":{"x":1,"y":2,"z":3}}`},
		{`a:=[1,{"x":2}] a.1.y:=3 a.2:=4`, `{"a":[1,{"x":2,"y":3},4]}`},
		{`a:=[1,2] a:=[3]`, `{"a":[3]}`},
		{`a:=[1,2] {"a":{"0":3}}`, `{"a":{"0":3}}`},
		{`a:={"x":1} a:={}`, `{"a":{"x":1}}`},
		{`a=1 a.b=2`, `{"a":{"b":"2"}}`},
		{`a.0=1 a.1=2`, `{"a":{"0":"1","1":"2"}}`},
		{`a:={"x":1} a:=null`, `{"a":null}`},
		{`a:=[1,2] a.5=x`, `-i a.5=x: what is there is an array of 2, in which only an index from 0 to 2 can be given, not 5`},
		{`b.a:=[] b.a.k=1`, `-i b.a.k=1: what is there is an array of 0, in which only an index from 0 to 0 can be given, not k`},
		{`a:=[1] a.00=1`, `-i a.00=1: what is there is an array of 1, in which only an index from 0 to 1 can be given, not 00`},
	} {
		v, err := ReadInputs(context.Background(), nil, strings.Fields(test.inputs))
		got := string(store.EncodeJSON(v.Value))
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s gives %s, not %s", test.inputs, got, test.want)
		}
	}
}
