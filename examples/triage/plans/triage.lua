-- Fifty messages of a mailbox. A model classifies them: fifty calls that no activity runs, put to it
-- in four requests. The plan is a function, asked again once they have settled: it then has letters
-- written by templates, holds what is serious for a person, team by team, and sums it up.
--
--   obelus run plans/triage.lua -c monday --cassette tests/cassettes/triage.json
--   obelus approvals -c monday
--   obelus approve 2.34 -c monday
--   obelus approve 2.35 -c monday
--   obelus reject 2.33 -c monday --reason "paid this morning"
--   obelus resume -c monday
--
-- The messages are parameters of calls and no part of the context, all of which a model is shown.

local fs = require("fs")
local mbox = require("mbox")

local messages = mbox.read(assert(fs.read("data/inbox.mbox")))

local function classify()
  local calls = {}
  for i, message in ipairs(messages) do
    calls[i] = {
      _tool = "classify",
      from = literal(message.from),
      subject = literal(message.subject),
      text = literal(message.text),
      _outputPath = "†state.found." .. message.id .. " || †state.unclear." .. message.id, -- what can't be told goes to the last
    }
  end
  return { calls = calls }
end

-- What is found may hold text that begins with †. It is copied whole, so it stays text.
local function act(found)
  local calls, headers, cases, teams = {}, {}, {}, {}
  for i, message in ipairs(messages) do
    headers[i] = { id = message.id, from = literal(message.from), subject = literal(message.subject) }
    local finding = found[message.id]
    if finding and finding.urgency == "serious" then
      if not cases[finding.team] then
        cases[finding.team] = {}
        teams[#teams + 1] = finding.team
      end
      table.insert(cases[finding.team], { id = message.id, from = headers[i].from, subject = headers[i].subject, summary = finding.summary })
    elseif finding and finding.reply ~= "none" then
      calls[#calls + 1] = { _tool = "answer", message = headers[i], finding = finding, _outputPath = "†state.letters." .. message.id }
    end
  end
  table.sort(teams)
  for _, team in ipairs(teams) do
    calls[#calls + 1] = { _tool = "escalate", team = team, cases = cases[team], _outputPath = "†state.rung." .. team .. " || †state.kept." .. team }
  end
  calls[#calls + 1] = { _tool = "overview", _outputPath = "†state.overview" }
  calls[#calls + 1] = { _tool = "digest", messages = headers, overview = "†state.overview", _outputPath = "†digest" }
  return { calls = calls, output = "†digest" }
end

return function(context)
  if context.state then
    return act(context.state.found or {})
  elseif context.error then
    error("no message could be classified: " .. text(context.error.error.message))
  end
  return classify()
end
