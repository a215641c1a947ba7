local name = "Ada/Lovelace"
local url = require("url")
local u = assert(url.parse("https://example.com:8443/a?q=x&tag=1&tag=2"))
assert(u.scheme == "https" and u.host == "example.com" and u.port == 8443 and u.path == "/a" and u.query.tag[2] == "2")
u.query.q = "two words"
local text = url.build(u) -- https://example.com:8443/a?q=two+words&tag=1&tag=2
assert(text == "https://example.com:8443/a?q=two+words&tag=1&tag=2", text)
local next = assert(url.join(text, "../b"))
assert(next == "https://example.com:8443/b", next)
local path = "/users/" .. url.escape(name)
assert(path == "/users/Ada%2FLovelace" and url.unescape(path) == "/users/" .. name)
