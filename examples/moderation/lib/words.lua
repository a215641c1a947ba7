-- Words that a comment is better without. Shared by activities through
-- require("words").

local M = {}

local unwelcome = { idiot = true, moron = true, rubbish = true }

-- find gives the unwelcome words of a text, each once, in their order.
function M.find(text)
  local found, seen = {}, {}
  for word in text:lower():gmatch("%a+") do
    if unwelcome[word] and not seen[word] then
      seen[word] = true
      found[#found + 1] = word
    end
  end
  return found
end

return M
