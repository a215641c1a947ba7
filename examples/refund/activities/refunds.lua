local time = require("time")

local DAY = 24 * 60 * 60

local function find(orders, id)
  for _, order in ipairs(orders) do
    if order.id == id then
      return order
    end
  end
end

-- decideRefund has two outcomes. What it returns goes to the first path of its
-- _outputPath; what it fails with (nil and a reason) goes to the last.
Tool.register("decideRefund", {
  description = "Decides whether an order is refunded, by the shop's policy.",
  properties = {
    orders = { type = "array" },
    orderId = { type = "string" },
    today = { type = "string", description = "The day of the decision, 2025-10-26." },
    _scopes = { const = { "state.policy" } },
  },
  required = { "orders", "orderId", "today" },
})

Activity.register("decideRefund", function(call, context)
  local policy = context.state.policy
  local order = find(call.orders, call.orderId)
  if not order then
    return nil, { message = "the order " .. call.orderId .. " is not one of the customer's", code = "unknown-order" }
  end
  if order.refunded then
    return nil, { message = "the order was refunded before", code = "refunded" }
  end
  local age = (time.parse(call.today, "%Y-%m-%d") - time.parse(order.date, "%Y-%m-%d")) / DAY
  if age > policy.windowDays then
    return nil, {
      message = string.format("the order is %d days old, and refunds end after %d", age, policy.windowDays),
      code = "too-late",
    }
  end
  return { order = order.id, item = order.item, amount = order.amount, feePercent = policy.feePercent }
end)

Tool.register("issueRefund", {
  description = "Pays a refund and gives the receipt.",
  properties = {
    order = { type = "string" },
    amount = { type = "number", minimum = 0 },
    feePercent = { type = "number" },
  },
  required = { "order", "amount", "feePercent" },
})

Activity.register("issueRefund", { idempotent = false }, function(call)
  local fee = math.floor(call.amount * call.feePercent + 0.5) / 100
  return {
    decision = "refunded",
    order = call.order,
    paid = call.amount - fee,
    fee = fee,
  }
end)

Tool.register("rejectRefund", {
  description = "Writes to the customer why there is no refund.",
  properties = {
    order = { type = "string" },
    reason = { type = "string" },
  },
  required = { "order", "reason" },
})

Activity.register("rejectRefund", function(call)
  return {
    decision = "rejected",
    order = call.order,
    letter = "We can't refund your order " .. call.order .. ": " .. call.reason .. ".",
  }
end)
