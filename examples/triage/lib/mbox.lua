-- Reads a mailbox in the format mbox, as far as this example needs it.

local str = require("str")

local M = {}

-- name is that of a sender, by which a letter addresses them.
function M.name(from)
  local name = from:match("^(.-)%s*<")
  return name ~= "" and name or from
end

-- read gives the messages of a mailbox: id, from, subject and text of each.
function M.read(text)
  local messages, message = {}, nil
  for _, line in ipairs(str.lines(text)) do
    local id = line:match("^From (%S+)")
    local field, value = line:match("^(%a+): (.*)$")
    if id then
      message = { id = id, lines = {} }
      messages[#messages + 1] = message
    elseif message.body then
      table.insert(message.lines, line)
    elseif line == "" then
      message.body = true
    elseif field then
      message[field:lower()] = value
    end
  end
  for i, m in ipairs(messages) do
    messages[i] = { id = m.id, from = m.from, subject = m.subject, text = str.trim(table.concat(m.lines, "\n")) }
  end
  return messages
end

return M
