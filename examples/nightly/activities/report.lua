local fs = require("fs")

Tool.register("writeReport", {
  description = "Leaves the report of a day below reports, and gives it.",
  properties = { day = { type = "string", format = "date" } },
  required = { "day" },
})

Activity.register("writeReport", { allow = { write = { "reports" } } }, function(call, context)
  local state, total = context.state, 0
  local lines = { "# Orders of " .. call.day, "", "| order | customer | total | |", "|---|---|--:|---|" }
  for _, order in ipairs(state.orders) do
    local note = ""
    if state.released and state.released[order.id] then
      note = "released"
    elseif state.stopped and state.stopped[order.id] then
      note = "stopped: " .. state.stopped[order.id].message
    end
    total = total + order.total
    lines[#lines + 1] = string.format("| %s | %s | %.2f | %s |", order.id, order.customer, order.total, note)
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = string.format("%d orders, %.2f in all.", #state.orders, total)
  local report = table.concat(lines, "\n") .. "\n"
  fs.mkdir("reports")
  local ok, err = fs.write("reports/" .. call.day .. ".md", report)
  if not ok then
    return nil, err
  end
  return report
end)
