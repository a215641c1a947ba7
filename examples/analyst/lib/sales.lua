-- The table of sales. Its numbers are numbers, and it has two columns that the file has not.

local csv = require("csv")
local fs = require("fs")

local M = {}

M.columns = {
  { name = "date", type = "date" },
  { name = "month", type = "text, as 2025-03" },
  { name = "quarter", type = "text, as 2025-Q1" },
  { name = "region", type = "text" },
  { name = "product", type = "text" },
  { name = "channel", type = "text" },
  { name = "units", type = "number: pieces sold" },
  { name = "net", type = "number: what they brought" },
  { name = "returned", type = "number: pieces that came back" },
}

local numbers = { units = true, net = true, returned = true }
local known, names = {}, {}
for i, column in ipairs(M.columns) do
  known[column.name], names[i] = true, column.name
end

function M.rows()
  local rows = assert(csv.decode(assert(fs.read("data/sales.csv")), { header = true }))
  for _, row in ipairs(rows) do
    for name in pairs(numbers) do
      row[name] = tonumber(row[name])
    end
    row.month = row.date:sub(1, 7)
    row.quarter = row.date:sub(1, 4) .. "-Q" .. math.ceil(tonumber(row.date:sub(6, 7)) / 3)
  end
  return rows
end

-- check fails if there is no such column, or if it has to hold numbers and does not. To try that
-- again is of no use.
function M.check(name, asNumber)
  if not known[name] then
    error({ message = 'there is no column "' .. name .. '"; there are ' .. table.concat(names, ", "), retry = false })
  elseif asNumber and not numbers[name] then
    error({ message = 'the column "' .. name .. '" holds no numbers', retry = false })
  end
end

return M
