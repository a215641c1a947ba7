-- Each article is an instance: the same paths, other values, and none sees
-- another's. One call with the instance "*" becomes a call for each, all run
-- side by side, and each is handed to the delegate "summariser". The plan is a
-- function, asked again once they have settled: what the instances hold by then
-- becomes one digest. A text of an article that begins with † has a second one here,
-- so that it stays text in the call that it is copied into (obelus help plans, DATA).
--
--   obelus run plans/newsroom.lua
--   obelus get state.summary --instance River
--   obelus contexts                         (the delegates' contexts are kept)

local fs = require("fs")

local context = {}
for i, article in ipairs(json.decode(assert(fs.read("data/articles.json")))) do
  context[i] = { type = "state", _instance = article.title, title = article.title, text = article.text }
end

return {
  context = context,

  calls = function(context)
    local summaries = {}
    for _, article in pairs(context._instances) do
      if article.state.summary then
        summaries[#summaries + 1] = { title = article.state.title, text = article.state.summary }
      end
    end
    if #summaries == 0 then
      return {
        calls = {
          {
            _tool = "summarise",
            _delegate = "summariser",
            _instance = "*",
            _scopes = { "state.text" },
            _outputPath = "†state.summary",
          },
        },
      }
    end
    table.sort(summaries, function(a, b) return a.title < b.title end)
    return { calls = { { _tool = "layOut", summaries = summaries, _outputPath = "†digest" } }, output = "†digest" }
  end,
}
