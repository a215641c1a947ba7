-- Each text is an instance: the same paths, other values. A call for each hands it to the delegate
-- "translator", which knows that text and no other, and asks a model. The plan is a function, asked
-- again once all have settled: what the instances hold by then is laid out by language.
--
--   obelus run plans/translator.lua -c shop --cassette tests/cassettes/translator.json
--   obelus get state.translation --instance cart.empty/de -c shop
--   obelus contexts                         (the delegates' contexts are kept)

local fs = require("fs")

local texts = json.decode(assert(fs.read("data/texts.json")))

local context = {}
for i, text in ipairs(texts) do
  context[i] = { type = "state", _instance = text.id .. "/" .. text.to, id = text.id, to = text.to, text = text.text }
end

local function translate()
  local calls = {}
  for i, text in ipairs(texts) do
    calls[i] = {
      _tool = "translate",
      _delegate = "translator",
      _instance = text.id .. "/" .. text.to,
      _scopes = { "state.text" },
      to = "†state.to",
      _outputPath = "†state.translation",
    }
  end
  return { calls = calls }
end

return {
  context = context,

  calls = function(context)
    local done = {}
    for _, instance in pairs(context._instances) do
      local state = instance.state
      if state.translation then
        done[#done + 1] = { id = state.id, to = state.to, text = state.translation }
      end
    end
    if #done == 0 then
      return translate()
    end
    table.sort(done, function(a, b) return a.to .. a.id < b.to .. b.id end)
    return { calls = { { _tool = "layOut", texts = done, _outputPath = "†texts" } }, output = "†texts" }
  end,
}
