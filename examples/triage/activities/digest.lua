Tool.register("digest", {
  description = "Sums up the morning in Markdown.",
  properties = {
    messages = { type = "array", items = { type = "object", required = { "id", "from", "subject" } } },
    overview = { type = "string" },
    _scopes = { const = { "state" } },
    _output = { type = "string" },
  },
  required = { "messages", "overview" },
})

local function sortedKeys(t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

local function cell(text)
  return (text:gsub("|", "\\|"))
end

Activity.register("digest", function(call, context)
  local state = context.state
  local found, letters, unclear = state.found or {}, state.letters or {}, state.unclear or {}
  local counts, lines = {}, { "# Mailbox: " .. #call.messages .. " messages", "", call.overview, "" }
  local function add(...)
    for _, line in ipairs({ ... }) do
      lines[#lines + 1] = line
    end
  end
  for _, finding in pairs(found) do
    counts[finding.category] = (counts[finding.category] or 0) + 1
  end
  add("| about | messages |", "|---|---:|")
  for _, category in ipairs(sortedKeys(counts)) do
    add("| " .. category .. " | " .. counts[category] .. " |")
  end
  add("", "## Serious", "")
  for _, message in ipairs(call.messages) do
    local finding = found[message.id]
    if finding and finding.urgency == "serious" then
      local done = state.rung and state.rung[finding.team] and "rung up" or "not rung up: " .. state.kept[finding.team].message
      add("- " .. message.id .. " " .. finding.summary .. " (" .. finding.team .. ", " .. done .. ")")
    end
  end
  add("", "## Answered", "", "| message | from | answer | summary |", "|---|---|---|---|")
  for _, message in ipairs(call.messages) do
    local finding = found[message.id]
    if letters[message.id] then
      add("| " .. message.id .. " | " .. cell(message.from) .. " | " .. finding.reply .. ", " .. finding.language .. " | " .. cell(finding.summary) .. " |")
    end
  end
  add("", "## Left for a person", "")
  for _, message in ipairs(call.messages) do
    local why = unclear[message.id]
    if why then
      add("- " .. message.id .. " " .. message.subject .. ": " .. why.message)
    elseif not found[message.id] then
      add("- " .. message.id .. " " .. message.subject .. ": it was not classified, see obelus calls")
    end
  end
  return table.concat(lines, "\n")
end)
