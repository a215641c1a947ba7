local base64 = require("base64")
local basic = "Basic " .. base64.encode("user:password")
assert(basic == "Basic dXNlcjpwYXNzd29yZA==")

-- the middle of a token as the web has them: no padding, - and _
local part = base64.encode('{"sub":"?>"}', { url = true })
local claims = assert(base64.decode(part, { url = true }))
assert(require("json").decode(claims).sub == "?>")

local bytes, err = base64.decode("not base64!")
assert(bytes == nil and err == "not base64: wrong at byte 4 of 11", err)
