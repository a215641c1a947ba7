-- "stock" is an object of the Go program; "charge", which the plan calls too, is
-- an activity of it.

Tool.register("reserve", {
  description = "Takes items out of the stock, as far as there are any.",
  properties = { item = { type = "string" }, count = { type = "integer" } },
  required = { "item", "count" },
})

Activity.register("reserve", function(call)
  local taken = stock:Take(call.item, call.count)
  if taken == 0 then
    return nil, "there is no " .. call.item
  end
  return { item = call.item, count = taken }
end)
