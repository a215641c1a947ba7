local template = require("template")

local rows = { type = "array", minItems = 1, items = { type = "object" }, description = "the rows of a result" }

Tool.register("chart", {
  description = "Draws rows as bars, in SVG.",
  properties = {
    title = { type = "string" },
    rows = rows,
    label = { type = "string", description = "the column with the names of the bars" },
    value = { type = "string", description = "the column with their lengths, of numbers from 0" },
    _outputPath = { pattern = "^†chart\\.[a-z_]+$" },
    _output = { type = "string" },
  },
  required = { "title", "rows", "label", "value", "_outputPath" },
})

local svg = [[
<svg xmlns="http://www.w3.org/2000/svg" width="480" height="{{height}}" font-family="sans-serif" font-size="13">
<text x="8" y="20" font-size="15">{{title | html}}</text>
{{#each bars}}
<text x="112" y="{{text}}" text-anchor="end">{{label | html}}</text><rect x="120" y="{{y}}" width="{{width}}" height="16" fill="#4a7c59"/><text x="{{beside}}" y="{{text}}">{{value}}</text>
{{/each}}
</svg>
]]

Activity.register("chart", function(call)
  local largest, bars = 0, {}
  for _, row in ipairs(call.rows) do
    assert(type(row[call.value]) == "number" and row[call.value] >= 0, 'the column "' .. call.value .. '" is not of numbers from 0')
    assert(row[call.label] ~= nil, 'there is no column "' .. call.label .. '" in the rows')
    largest = math.max(largest, row[call.value])
  end
  for i, row in ipairs(call.rows) do
    local width = largest > 0 and math.floor(280 * row[call.value] / largest + 0.5) or 0
    local y = 12 + 24 * i
    bars[i] = { label = tostring(row[call.label]), value = row[call.value], y = y, text = y + 13, width = width, beside = 126 + width }
  end
  return assert(template.render(svg, { title = call.title, height = 48 + 24 * #bars, bars = bars }))
end)

-- No activity runs conclude: the model that plans gives the result in its plan.
Tool.register("conclude", {
  description = "Answers the question in two to four sentences, by what the results say and nothing else.",
  additionalProperties = false,
  properties = {
    _outputPath = { const = "†state.conclusion" },
    _output = { type = "string", maxLength = 700 },
  },
})

Tool.register("report", {
  description = "Writes the report in Markdown: a conclusion, and a table.",
  properties = {
    title = { type = "string" },
    conclusion = { type = "string" },
    rows = rows,
    columns = { type = "array", items = { type = "string" }, minItems = 1, description = "those of the table, in their order" },
    _outputPath = { const = "†report" },
    _output = { type = "string" },
  },
  required = { "title", "conclusion", "rows", "columns" },
})

Activity.register("report", function(call)
  local lines = { "# " .. call.title, "", call.conclusion, "", "| " .. table.concat(call.columns, " | ") .. " |", "|" .. ("---|"):rep(#call.columns) }
  for _, row in ipairs(call.rows) do
    local cells = {}
    for i, column in ipairs(call.columns) do
      assert(row[column] ~= nil, 'there is no column "' .. column .. '" in the rows')
      cells[i] = tostring(row[column])
    end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return table.concat(lines, "\n")
end)
