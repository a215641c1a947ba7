package luastd

import (
	"encoding/base64"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// base64: text that carries bytes, as in RFC 4648. In Lua:
//
//	local base64 = require("base64")
//	local basic = "Basic " .. base64.encode("user:password")
//	local claims = assert(base64.decode(part, { url = true }))
//
// Decoded bytes may be any; a value of JSON holds them only if they are
// UTF-8.
var base64Funcs = []Func{
	{"decode", base64Decode},
	{"encode", base64Encode},
}

// base64.decode(text, [{url = true}]) → bytes | nil, err; url for the alphabet
// of URLs and file names. Padding may be there or not, line ends are passed
// over.
func base64Decode(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	encoding := base64Alphabet(e, L)
	if !strings.Contains(text, "=") {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	e.charge(L, len(text)/16+1)
	decoded, err := encoding.DecodeString(text)
	if at, ok := err.(base64.CorruptInputError); ok && int(at) >= len(text) {
		return failed(L, "not base64: it ends too early")
	} else if ok {
		return failed(L, fmt.Sprintf("not base64: wrong at byte %d of %d", int(at)+1, len(text)))
	}
	L.Push(lua.LString(decoded))
	return 1
}

// base64.encode(bytes, [{url = true}]) → text, padded; with url in the
// alphabet of URLs and file names, without padding
func base64Encode(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	encoding := base64Alphabet(e, L)
	if encoding == base64.URLEncoding {
		encoding = base64.RawURLEncoding
	}
	e.limit(L, encoding.EncodedLen(len(text)))
	L.Push(lua.LString(encoding.EncodeToString([]byte(text))))
	return 1
}

func base64Alphabet(e *Env, L *lua.LState) *base64.Encoding {
	if lua.LVAsBool(e.options(L, 2, "url").RawGetString("url")) {
		return base64.URLEncoding
	}
	return base64.StdEncoding
}
