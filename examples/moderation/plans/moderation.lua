-- A hundred comments from a file, each looked at by three checks: three
-- hundred calls, of which as many run at once as the settings allow. Their
-- findings are pushed to one list; what reads that list waits for all of them.
--
--   obelus run plans/moderation.lua
--   obelus run plans/moderation.lua -i removeFrom:=12

local fs = require("fs")

local comments = json.decode(assert(fs.read("data/comments.json")))

local calls = {}
for _, comment in ipairs(comments) do
  for _, check in ipairs({ "checkLinks", "checkShouting", "checkWords" }) do
    calls[#calls + 1] = { _tool = check, comment = { id = comment.id, text = comment.text } }
  end
end

calls[#calls + 1] = { _tool = "rankComments", findings = "†state.findings", _outputPath = "†state.ranking" }
calls[#calls + 1] = {
  _tool = "summarise",
  ranking = "†state.ranking",
  removeFrom = "†input.removeFrom || 8",
  reviewFrom = "†input.reviewFrom || 4",
  _outputPath = "†state.summary",
}

return {
  calls = calls,
  output = {
    checks = "†(len(†state.findings))",
    suspicious = "†(count(†state.ranking, .score > 0))",
    summary = "†state.summary",
  },
}
