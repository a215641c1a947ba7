package luastd

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"

	lua "github.com/yuin/gopher-lua"
)

// hash: digests of text, as hexadecimal digits in lower case. In Lua:
//
//	local hash = require("hash")
//	local etag = hash.sha256(body)
//	local signature = hash.hmac("sha256", key, body)
//	local raw = hash.hmac("sha256", key, body, { raw = true })
//
// With raw a digest is its bytes, as base64.encode or the key of a further
// hmac takes them. md5, sha1 and crc32 are for formats that need them: they do
// not protect against an attacker.
var hashFuncs = []Func{
	{"crc32", hashCRC32},
	{"hmac", hashHMAC},
	{"md5", digest(md5.New)},
	{"sha1", digest(sha1.New)},
	{"sha256", digest(sha256.New)},
	{"sha512", digest(sha512.New)},
}

// hash.crc32(text) → 8 hexadecimal digits, by the polynomial of zip and PNG
func hashCRC32(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	e.charge(L, len(text)/16+1)
	L.Push(lua.LString(fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))))
	return 1
}

// hash.hmac(algorithm, key, text, [{raw = true}]) → digest; algorithm is
// "md5", "sha1", "sha256" or "sha512"
func hashHMAC(e *Env, L *lua.LState) int {
	algorithm, key, text := L.CheckString(1), L.CheckString(2), L.CheckString(3)
	opts := e.options(L, 4, "raw")
	algorithms := map[string]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}
	made, ok := algorithms[algorithm]
	if !ok {
		L.ArgError(1, fmt.Sprintf("unknown algorithm %.40q (one of md5, sha1, sha256, sha512)", algorithm))
	}
	e.charge(L, (len(key)+len(text))/16+1)
	return pushDigest(L, hmac.New(made, []byte(key)), text, opts)
}

// hash.md5|sha1|sha256|sha512(text, [{raw = true}]) → digest
func digest(made func() hash.Hash) func(e *Env, L *lua.LState) int {
	return func(e *Env, L *lua.LState) int {
		text := L.CheckString(1)
		opts := e.options(L, 2, "raw")
		e.charge(L, len(text)/16+1)
		return pushDigest(L, made(), text, opts)
	}
}

func pushDigest(L *lua.LState, h hash.Hash, text string, opts *lua.LTable) int {
	h.Write([]byte(text))
	sum := h.Sum(nil)
	if lua.LVAsBool(opts.RawGetString("raw")) {
		L.Push(lua.LString(sum))
	} else {
		L.Push(lua.LString(hex.EncodeToString(sum)))
	}
	return 1
}
