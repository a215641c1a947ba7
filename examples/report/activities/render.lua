Tool.register("renderReport", {
  description = "Writes the report as Markdown.",
  properties = {
    title = { type = "string" },
    currency = { type = "string" },
    totals = { type = "object" },
    remark = { type = "string" },
    _output = { type = "string" },
  },
  required = { "title", "currency", "totals", "remark" },
})

local function thousands(n)
  local digits = string.format("%d", n)
  return (digits:reverse():gsub("(%d%d%d)", "%1 "):reverse():gsub("^ ", ""))
end

Activity.register("renderReport", function(call)
  local lines = {
    "# " .. call.title,
    "",
    string.format("From %s to %s, in %s.", call.totals.from, call.totals.to, call.currency),
    "",
    "| channel | sum | growth |",
    "|---|---:|---:|",
  }
  for _, row in ipairs(call.totals.rows) do
    lines[#lines + 1] = string.format("| %s | %s | %+.1f %% |", row.channel, thousands(row.sum), row.growth)
  end
  lines[#lines + 1] = string.format("| **all** | **%s** | |", thousands(call.totals.sum))
  lines[#lines + 1] = ""
  lines[#lines + 1] = call.remark
  return table.concat(lines, "\n")
end)
