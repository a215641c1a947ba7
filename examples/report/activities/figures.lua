local fs = require("fs")

Tool.register("loadFigures", {
  description = "Reads the monthly figures of all channels.",
  properties = {
    file = { type = "string" },
    _output = { type = "object", required = { "company", "months" } },
  },
  required = { "file" },
})

Activity.register("loadFigures", { allow = { read = { "data" } } }, function(call)
  local text, err = fs.read(call.file)
  if not text then
    return nil, err
  end
  return json.decode(text)
end)

Tool.register("totals", {
  description = "Sums of each channel over some months, and how the last compares with the first.",
  properties = {
    months = { type = "array", minItems = 1 },
    channels = { type = "array", items = { type = "string" } },
  },
  required = { "months", "channels" },
})

Activity.register("totals", function(call)
  local first, last = call.months[1], call.months[#call.months]
  local rows, all = {}, 0
  for _, channel in ipairs(call.channels) do
    local sum = 0
    for _, month in ipairs(call.months) do
      if not month[channel] then
        return nil, { message = "no figures of " .. channel .. " in " .. month.month, code = "no-figures" }
      end
      sum = sum + month[channel]
    end
    all = all + sum
    rows[#rows + 1] = {
      channel = channel,
      sum = math.floor(sum + 0.5),
      growth = math.floor(1000 * (last[channel] / first[channel] - 1) + 0.5) / 10,
    }
  end
  return { from = first.month, to = last.month, rows = rows, sum = math.floor(all + 0.5) }
end)
