-- Three checks of one comment each. A check gives a finding: how bad it is,
-- from 0 (nothing wrong) to 10, and why.

local words = require("words")

local comment = {
  type = "object",
  properties = { id = { type = "integer" }, text = { type = "string" } },
  required = { "id", "text" },
}

local function check(name, description, judge)
  Tool.register(name, {
    description = description,
    properties = {
      comment = comment,
      -- findings of all checks of all comments are collected in one list
      _outputPath = { const = "†state.findings" },
      _outputMethod = { const = "push" },
    },
    required = { "comment" },
  })
  Activity.register(name, function(call)
    local score, reason = judge(call.comment.text)
    return { comment = call.comment.id, check = name, score = score, reason = reason }
  end)
end

check("checkLinks", "Counts links: spam is full of them.", function(text)
  local _, links = text:gsub("https?://", "")
  if links == 0 then
    return 0
  end
  return math.min(10, 3 * links + 2), links == 1 and "a link" or links .. " links"
end)

check("checkShouting", "Looks for text in capitals.", function(text)
  local _, letters = text:gsub("%a", "")
  local _, capitals = text:gsub("%u", "")
  if letters < 10 or capitals / letters < 0.6 then
    return 0
  end
  return 4, "shouting"
end)

check("checkWords", "Looks for unwelcome words.", function(text)
  local found = words.find(text)
  if #found == 0 then
    return 0
  end
  return math.min(10, 5 + #found), "the words " .. table.concat(found, ", ")
end)
