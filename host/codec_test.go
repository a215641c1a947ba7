package host

import (
	"testing"

	"obelus/engine/plan"
)

// TestLazyTable_Peek holds that a table of which fields have been read is the same as
// one that is filled at once.
func TestLazyTable_Peek(t *testing.T) {
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
	in := plan.Invocation{Call: object(t, `{"user":{"name":"Ada"},"list":[1,null,{"deep":true}]}`)}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := runA(one(t, test.body), in); err != nil || got != test.want {
				t.Errorf("got %s %v, want %s", got, err, test.want)
			}
		})
	}
}

// TestCodec_UnchangedValues: what a script gives back of what it was given is as it was,
// but for what the script has changed.
func TestCodec_UnchangedValues(t *testing.T) {
	in := plan.Invocation{Call: object(t, `{"empty":[],"odd":{"big":12345678901234567890,"n":1.50,"none":null,"in_list":[1.50,null,-0,1e400],"only":{"none":null}},"two":{"a":null,"b":null}}`)}
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
