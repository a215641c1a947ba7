-- Orders come from a CSV file, as a shop system would export it.

local csv = require("csv")
local fs = require("fs")

Tool.register("lookupOrders", {
  description = "Finds all orders of a customer.",
  properties = {
    customerId = { type = "string", pattern = "^c-[0-9]+$" },
    _output = {
      type = "object",
      properties = { orders = { type = "array" } },
      required = { "orders", "count" },
    },
  },
  required = { "customerId" },
})

Activity.register("lookupOrders", { timeout = "5s" }, function(call)
  local text, err = fs.read("data/orders.csv")
  if not text then
    return nil, err
  end
  local orders = {}
  for _, row in ipairs(assert(csv.decode(text, { header = true }))) do
    if row.customer == call.customerId then
      orders[#orders + 1] = {
        id = row.order,
        item = row.item,
        date = row.date,
        amount = tonumber(row.amount),
        refunded = row.refunded == "yes",
      }
    end
  end
  if #orders == 0 then
    return nil, { message = "no orders of " .. call.customerId, code = "unknown-customer" }
  end
  return { orders = orders, count = #orders }
end)
