local api, token = call.server, "t0ken" -- the test's own server
local http = require("http")
local answer = assert(http.get(api .. "/orders", {
  query = { customer = 7, tag = { "a", "b" } },
}))
if answer.status == 200 then
  local orders = assert(answer:json())
  assert(orders[1].title == "Book" and orders[1].asked == "customer=7&tag=a&tag=b")
end
local made = assert(http.post(api .. "/orders", {
  headers = { authorization = "Bearer " .. token }, json = { title = "Book" }, timeout = 5,
}))
assert(made.status == 201 and made.headers.location == "/orders/1")

local missing = assert(http.request { method = "DELETE", url = api .. "/nothing" })
assert(missing.status == 404 and missing.body == "no such order\n")

local refused, err = http.get("https://example.com/")
assert(refused == nil and err:find("run with --allow-net=example.com:443 or set allow.net in obelus.lua", 1, true), err)
