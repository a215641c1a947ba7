local hash = require("hash")
local body, key = "The quick brown fox jumps over the lazy dog", "key"
local etag = hash.sha256(body)
assert(etag == "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592")
local signature = hash.hmac("sha256", key, body)
assert(signature == "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8")
local raw = hash.hmac("sha256", key, body, { raw = true })
assert(require("base64").encode(raw) == "97yD9DBThCSxMpjmqm+xQ+9NWaFJRhdZl0edvC0aPNg=")

assert(hash.crc32(body) == "414fa339")
assert(hash.md5(body) == "9e107d9d372bb6826bd81d3542a419d6")
assert(hash.sha1(body) == "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12")
assert(#hash.sha512(body) == 128)
