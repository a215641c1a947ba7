Activity.register("addUp", function(call)
  local total = 0
  for _, line in ipairs(call.lines) do
    total = total + line.amount
  end
  return { employee = call.employee, total = total, lines = #call.lines }
end)

Tool.register("judge", { properties = { _scopes = { const = { "state.policy" } } } })

Activity.register("judge", function(call, context)
  if call.claim.total <= context.state.policy.withoutAsking then
    return Output.to("†state.small", call.claim)
  end
  return Output.to("†state.large", call.claim)
end)

-- Two tools, one activity. Only the second is held, see obelus.lua; its
-- amount is what a person may correct.
local amount = { type = "number", minimum = 0 }
Tool.register("paySmall", { _activity = "pay", properties = { employee = { type = "string" }, amount = amount } })
Tool.register("payLarge", { _activity = "pay", properties = { employee = { type = "string" }, amount = amount } })

Activity.register("pay", { idempotent = false }, function(call)
  return { to = call.employee, paid = call.amount }
end)

Activity.register("write", function(call)
  if call.refusal then
    return "Dear " .. call.employee .. ", your claim was refused: " .. call.refusal.message .. "."
  end
  return "Dear " .. call.employee .. ", you have been paid " .. call.receipt.paid .. "."
end)
