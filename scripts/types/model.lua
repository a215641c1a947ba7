---@meta model

-- Written by obelus types, which writes it again: changes are lost.

---model: questions to the language models of the project. Each model needs the
---permission model, and what it uses counts for the call and for its run's budget.
---@class obelus.model
local model = {}

---@class obelus.model.Question
---@field prompt string
---@field data? any shown as data, apart from the prompt
---@field schema? table a JSON Schema that the answer fits; a text without one
---@field model? string a name of models in obelus.lua; the default one without it

---Asks, and waits for an answer within the time of the call. Only an activity that a
---run calls can ask.
---@param question obelus.model.Question
---@return any answer
---@return string? err
function model.ask(question) end

return model
