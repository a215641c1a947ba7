package host

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/host/internal/codec"
	"obelus/host/internal/limits"
	"obelus/host/internal/luatext"
	"obelus/store"
)

// withoutNulls is what is left of a value in Lua: no null fields, numbers as
// exact as a float64 is, large integers as text.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case json.Number:
		return toNumberOrText(v)
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			if e != nil {
				out[key] = withoutNulls(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withoutNulls(e)
		}
		return out
	}
	return v
}

func toNumberOrText(n json.Number) any {
	if i, ok := new(big.Int).SetString(string(n), 10); ok {
		if i.CmpAbs(big.NewInt(luatext.MaxExact)) > 0 {
			return string(n)
		}
		return json.Number(i.String())
	}
	f, err := n.Float64()
	if err != nil {
		return string(n)
	}
	return codec.JsonNumber(f)
}

// FuzzCodec: JSON to Lua and back is the same JSON, touched or not; and
// whatever table a script builds, the codec gives a value or an error.
func FuzzCodec(f *testing.F) {
	for _, seed := range []string{
		`null`, `true`, `0`, `-0`, `1e2`, `0.1`, `9007199254740992`, `9007199254740993`, `-9007199254740993`, `1e400`, `123456789012345678901234567890`,
		`"text"`, `"†††"`, `""`, `[]`, `{}`, `[null]`, `[null,null,1]`, `{"a":null}`, `{"a":[],"b":{}}`, `[[],[[]],{}]`, `{"1":1,"2":2}`, `{"":""}`,
		`{"type":"data","data":1}`, `[1,2,3,[4,{"x":[5]}]]`, `{"a b":{"__index":1}}`, `"\u0000"`, `["9007199254740993"]`,
		"[" + fmt.Sprint(1) + `,{"k":"v"}]`,
	} {
		f.Add([]byte(seed), uint8(len(seed)))
	}
	g := bareGeneration()
	f.Fuzz(func(t *testing.T, text []byte, how uint8) {
		v, err := store.DecodeJSON(text)
		if err != nil || depthOf(v) > limits.MaxDepth {
			return
		}
		s := newSession(g)
		s.begin(context.Background(), 1<<40, &script{}, nil)
		left := int(how)
		table := s.Value(v, &left)
		if how%2 == 0 {
			if err := touch(s.state, table); err != nil {
				t.Fatal(err)
			}
		}
		back, err := s.FromLua(table, "v")
		if err != nil {
			t.Fatal(err)
		}
		want := v
		if _, ok := table.(*lua.LTable); !ok {
			want = withoutNulls(v) // a number by itself is Lua's
		}
		if got, want := string(store.EncodeJSON(back)), string(store.EncodeJSON(want)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		hostile := s.hostile(text)
		if value, err := s.Encode(hostile, v, "v"); err == nil {
			if values, _ := (&codec.Encoder{}).Measure(value); values < 1000 { // shared tables make a million of a few bytes
				store.EncodeJSON(value)
			}
		}
	})
}

func depthOf(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, depthOf(e))
		}
	case []any:
		for _, e := range v {
			deepest = max(deepest, depthOf(e))
		}
	default:
		return 0
	}
	return deepest + 1
}

// hostile builds a table of whatever the bytes say.
func (s *state) hostile(text []byte) *lua.LTable {
	root := s.L.NewTable()
	tables := []*lua.LTable{root}
	for i := 0; i+1 < len(text); i += 2 {
		at := tables[int(text[i])%len(tables)]
		var v, key lua.LValue
		switch text[i+1] % 9 {
		case 0:
			t := s.L.NewTable()
			tables = append(tables, t)
			v = t
		case 1:
			v = tables[int(text[i+1])%len(tables)]
		case 2:
			v = lua.LNumber(text[i]) / lua.LNumber(text[i+1]-2)
		case 3:
			v = lua.LString(text[i:])
		case 4:
			v = s.globals["print"]
		case 5:
			v = s.L.NewUserData()
		case 6:
			at.Metatable = s.ArrayMark
			continue
		case 7:
			v = s.ToLuaLater(map[string]any{"x": []any{nil}})
		default:
			v = lua.LTrue
		}
		switch text[i] % 4 {
		case 0:
			at.Append(v)
			continue
		case 1:
			key = lua.LString(text[i : i+1])
		case 2:
			key = lua.LNumber(text[i+1]) / 4
		default:
			key = lua.LTrue
		}
		at.RawSet(key, v)
	}
	return root
}

// TestPeeking holds that a table of which fields have been read is the same as
// one that is filled at once.
func TestPeeking(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"the same table", `local u = call.user; u.name = "Eve"; return { call.user == u, call.user.name }`, `[true,"Eve"]`},
		{"changed below and returned", `call.user.name = "Eve"; return call`, `{"list":[1,null,{"deep":true}],"user":{"name":"Eve"}}`},
		{"changed in a list and returned", `call.list[3].deep = 1; return call.list`, `[1,null,{"deep":1}]`},
		{"read and returned", `local _ = call.user.name, call.list[1]; return call`, `{"list":[1,null,{"deep":true}],"user":{"name":"Ada"}}`},
		{"pairs afterwards", `local u, keys = call.user, {}; for k, v in pairs(call) do keys[#keys + 1] = k; if k == "user" then keys[#keys + 1] = v == u end end; return keys`, `["list","user",true]`},
		{"many reads", `local u = call.user; for i = 1, 20 do assert(call.user == u and call.nothing == nil) end; return rawget(call, "user") == u`, `true`},
		{"elements", `return { call.list[2] == json.null, call.list[0] == nil, call.list[4] == nil, call.list[1.5] == nil, call.list.x == nil, call.list[0/0] == nil, #call.list }`, `[true,true,true,true,true,true,3]`},
		{"keys of other types", `return { call[1] == nil, call[true] == nil, call[call] == nil }`, `[true,true,true]`},
		{"a library", `local upper = string.upper; string.upper = string.lower; return { ("aB"):upper(), upper("aB"), rawget(string, "rep") == string.rep }`, `["ab","AB",true]`},
		{"a library with a metatable", `local f = math.floor; setmetatable(math, { __index = function(_, k) return k end }); return { math.floor == f, math.none, next(math) ~= nil }`, `[true,"none",true]`},
	}
	in := engine.Invocation{Call: object(t, `{"user":{"name":"Ada"},"list":[1,null,{"deep":true}]}`)}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := runA(one(t, test.body), in); err != nil || got != test.want {
				t.Errorf("got %s %v, want %s", got, err, test.want)
			}
		})
	}
}

// TestLookingChangesNothing: what a script gives back of what it was given is as it was,
// but for what the script has changed.
func TestLookingChangesNothing(t *testing.T) {
	in := engine.Invocation{Call: object(t, `{"empty":[],"odd":{"big":12345678901234567890,"n":1.50,"none":null,"in_list":[1.50,null,-0,1e400],"only":{"none":null}},"two":{"a":null,"b":null}}`)}
	for _, test := range []struct{ name, body, want string }{
		{"looked at", `for i = 1, 20 do local _ = call.odd.n end; for _ in pairs(call.odd.in_list) do end; return call.odd`, `{"big":12345678901234567890,"in_list":[1.50,null,-0,1e400],"n":1.50,"none":null,"only":{"none":null}}`},
		{"changed", `local o = call.odd; o.n, o.in_list[1] = 2, 1.75; return o`, `{"big":12345678901234567890,"in_list":[1.75,null,0,"1e400"],"n":2,"none":null,"only":{"none":null}}`},
		{"moved", `local l = call.odd.in_list; l[1], l[4] = l[4], l[1]; return l`, `["1e400",null,0,1.5]`},
		{"more of it", `local o = call.odd.only; o.x = 5; return o`, `{"none":null,"x":5}`},
		{"a null of it", `local o = call.odd; o.none = "there"; return o`, `{"big":12345678901234567890,"in_list":[1.50,null,-0,1e400],"n":1.50,"none":"there","only":{"none":null}}`},
		{"moved to a null", `local o = call.odd; o.none, o.n = o.n, nil; return o`, `{"big":12345678901234567890,"in_list":[1.50,null,-0,1e400],"none":1.5,"only":{"none":null}}`},
		{"one null of two", `call.two.a = 1; return call.two`, `{"a":1,"b":null}`},
		{"less of it", `local o = call.odd; o.n = nil; return o`, `{"big":12345678901234567890,"in_list":[1.50,null,-0,1e400],"only":{"none":null}}`},
		{"nothing of it", `local o = call.odd; for k in pairs(o) do o[k] = nil end; return o`, `{}`},
		{"as text", `return { big = call.odd.big, odd = getmetatable(call.odd) }`, `{"big":"12345678901234567890"}`},
		{"an array no more", `call.empty.x = 1; return call.empty`, `{"x":1}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := runA(one(t, test.body), in); err != nil || got != test.want {
				t.Errorf("got %s %v, want %s", got, err, test.want)
			}
		})
	}
}
