local http = require("http")

-- What these activities ask for; the project grants no more (obelus check lists both).
local allow = { net = { "127.0.0.1" } }

-- answer gives the value of an answer, or an error that has the call tried again.
local function answer(got, err)
  if not got then
    return nil, err
  end
  if got.status >= 300 then
    return nil, "the shop answers " .. got.status .. ": " .. got.body
  end
  return got:json()
end

Tool.register("fetchOrders", {
  description = "The orders of a day.",
  properties = {
    shop = { type = "string" },
    day = { type = "string", format = "date" },
    _output = {
      type = "array",
      items = {
        properties = {
          id = { type = "string", pattern = "^[a-z0-9]+$" },
          customer = { type = "string" },
          total = { type = "number" },
        },
        required = { "id", "customer", "total" },
      },
    },
  },
  required = { "shop", "day" },
})

Activity.register("fetchOrders", { allow = allow }, function(call)
  return answer(http.get(call.shop .. "/orders", { query = { day = call.day } }))
end)

Tool.register("release", {
  description = "Has the shop send a large order.",
  properties = {
    shop = { type = "string" },
    order = { type = "string" },
    total = { type = "number" },
    customer = { type = "string" },
  },
  required = { "shop", "order", "total" },
})

-- The shop knows an order that was released before, so that it may be done again.
Activity.register("release", { allow = allow, retries = 3 }, function(call)
  return answer(http.post(call.shop .. "/orders/" .. call.order .. "/release", { json = { total = call.total } }))
end)

Tool.register("alert", {
  description = "Tells the people of the shop.",
  properties = { shop = { type = "string" }, text = { type = "string" } },
  required = { "shop", "text" },
})

Activity.register("alert", { allow = allow }, function(call)
  return answer(http.post(call.shop .. "/alerts", { json = { text = call.text } }))
end)
