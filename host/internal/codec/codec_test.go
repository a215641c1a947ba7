package codec

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	lua "github.com/yuin/gopher-lua"

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
	return jsonNumber(f)
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
	f.Fuzz(func(t *testing.T, text []byte, how uint8) {
		v, err := store.DecodeJSON(text)
		if err != nil || depthOf(v) > limits.MaxDepth {
			return
		}
		c := newCodec()
		left := int(how)
		table := c.convert(v, &left)
		if how%2 == 0 {
			if err := touch(c, table); err != nil {
				t.Fatal(err)
			}
		}
		back, err := c.FromLua(table, "v")
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
		hostile := hostileTable(c, text)
		if value, err := c.Encode(hostile, v, "v"); err == nil {
			if values, _ := (&encoder{}).measure(value); values < 1000 { // shared tables make a million of a few bytes
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

// hostileTable builds a table of whatever the bytes say.
func hostileTable(c *Codec, text []byte) *lua.LTable {
	root := c.state.NewTable()
	tables := []*lua.LTable{root}
	for i := 0; i+1 < len(text); i += 2 {
		at := tables[int(text[i])%len(tables)]
		var v, key lua.LValue
		switch text[i+1] % 9 {
		case 0:
			t := c.state.NewTable()
			tables = append(tables, t)
			v = t
		case 1:
			v = tables[int(text[i+1])%len(tables)]
		case 2:
			v = lua.LNumber(text[i]) / lua.LNumber(text[i+1]-2)
		case 3:
			v = lua.LString(text[i:])
		case 4:
			v = c.state.NewFunction(func(*lua.LState) int { return 0 })
		case 5:
			v = c.state.NewUserData()
		case 6:
			at.Metatable = c.arrayMark
			continue
		case 7:
			v = c.ToLuaLater(map[string]any{"x": []any{nil}})
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

// endless is a meter that never runs out.
type endless struct{}

func (endless) Charge(*lua.LState, int) {}

func (endless) Spent(int) bool { return false }

func newCodec() *Codec {
	L := lua.NewState()
	return New(L, func() *lua.LState { return L }, endless{}, &limits.Defaults)
}

// touch fills every table of v.
func touch(c *Codec, v lua.LValue) error {
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil
	}
	c.Fill(t)
	for key, e := t.Next(lua.LNil); key != lua.LNil; key, e = t.Next(key) {
		if err := touch(c, e); err != nil {
			return err
		}
	}
	return nil
}
