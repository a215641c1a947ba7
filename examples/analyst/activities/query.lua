local sales = require("sales")

Tool.register("describe", {
  description = "Says which columns the table of sales has, how many rows, and which values its texts have.",
  additionalProperties = false,
  properties = { _outputPath = { const = "†table" } },
})

Activity.register("describe", function()
  local rows, columns = sales.rows(), {}
  for i, column in ipairs(sales.columns) do
    columns[i] = { name = column.name, type = column.type }
    if column.type == "text" then
      local values, seen = {}, {}
      for _, row in ipairs(rows) do
        if not seen[row[column.name]] then
          seen[row[column.name]] = true
          values[#values + 1] = row[column.name]
        end
      end
      table.sort(values)
      columns[i].values = values
    end
  end
  return { rows = #rows, columns = columns }
end)

-- The query is small on purpose: it can't write, can't run long and can't read another file.
Tool.register("query", {
  description = "Filters the table of sales, groups it, and adds up. A row has the columns of by and the names of measures.",
  properties = {
    where = {
      type = "array",
      description = "all of them must hold",
      items = {
        type = "object",
        properties = {
          column = { type = "string" },
          is = { enum = { "=", "!=", "<", "<=", ">", ">=" } },
          value = { type = { "string", "number" } },
        },
        required = { "column", "is", "value" },
      },
    },
    by = { type = "array", items = { type = "string" }, maxItems = 3 },
    measures = {
      type = "array",
      minItems = 1,
      items = {
        type = "object",
        properties = {
          name = { type = "string", pattern = "^[a-z_]+$" },
          of = { enum = { "count", "sum", "mean", "min", "max" } },
          column = { type = "string", description = "for all but count" },
          per = { type = "string", description = "of a sum: another column, by whose sum it is divided" },
        },
        required = { "name", "of" },
      },
    },
    sort = { type = "string", description = "a measure, the largest first; without it rows are sorted by their groups" },
    _outputPath = { pattern = "^†result\\.[a-z_]+$" },
    _output = {
      type = "object",
      properties = { rows = { type = "array", items = { type = "object" } } },
      required = { "rows" },
    },
  },
  required = { "by", "measures", "_outputPath" },
})

local compare = {
  ["="] = function(a, b) return a == b end,
  ["!="] = function(a, b) return a ~= b end,
  ["<"] = function(a, b) return a < b end,
  ["<="] = function(a, b) return a <= b end,
  [">"] = function(a, b) return a > b end,
  [">="] = function(a, b) return a >= b end,
}

local function keeps(row, conditions)
  for _, condition in ipairs(conditions or {}) do
    local value = row[condition.column]
    if type(value) ~= type(condition.value) then
      error({ message = 'the column "' .. condition.column .. '" is compared with a ' .. type(condition.value), retry = false })
    elseif not compare[condition.is](value, condition.value) then
      return false
    end
  end
  return true
end

local function sum(rows, column)
  local total = 0
  for _, row in ipairs(rows) do
    total = total + row[column]
  end
  return total
end

local function rounded(x)
  return math.floor(x * 10000 + 0.5) / 10000
end

local function measured(rows, measure)
  if measure.of == "count" then
    return #rows
  elseif measure.of == "sum" then
    return rounded(measure.per and sum(rows, measure.column) / sum(rows, measure.per) or sum(rows, measure.column))
  elseif measure.of == "mean" then
    return rounded(sum(rows, measure.column) / #rows)
  end
  local best = rows[1][measure.column]
  for _, row in ipairs(rows) do
    best = math[measure.of](best, row[measure.column])
  end
  return best
end

local function check(call)
  for _, condition in ipairs(call.where or {}) do
    sales.check(condition.column)
  end
  for _, column in ipairs(call.by) do
    sales.check(column)
  end
  local names = {}
  for _, measure in ipairs(call.measures) do
    names[measure.name] = true
    if measure.of ~= "count" then
      sales.check(measure.column or "", true)
    end
    if measure.per then
      sales.check(measure.per, true)
    end
  end
  assert(not call.sort or names[call.sort], "sort names no measure")
end

Activity.register("query", function(call)
  check(call)
  local groups, keys = {}, {}
  for _, row in ipairs(sales.rows()) do
    if keeps(row, call.where) then
      local parts = {}
      for i, column in ipairs(call.by) do
        parts[i] = tostring(row[column])
      end
      local key = table.concat(parts, "\0")
      if not groups[key] then
        groups[key] = {}
        keys[#keys + 1] = key
      end
      table.insert(groups[key], row)
    end
  end
  table.sort(keys)
  local rows = json.array()
  for i, key in ipairs(keys) do
    local made = {}
    for _, column in ipairs(call.by) do
      made[column] = groups[key][1][column]
    end
    for _, measure in ipairs(call.measures) do
      made[measure.name] = measured(groups[key], measure)
    end
    rows[i] = made
  end
  if call.sort then
    local place = {}
    for i, row in ipairs(rows) do
      place[row] = i
    end
    table.sort(rows, function(a, b)
      if a[call.sort] ~= b[call.sort] then
        return a[call.sort] > b[call.sort]
      end
      return place[a] < place[b]
    end)
  end
  return { rows = rows }
end)
