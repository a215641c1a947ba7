-- A question about a table of sales. There are neither calls nor a function here: a model plans, tick
-- by tick, with the tools that are offered, and sees what came of its calls.
--
--   obelus run plans/analyst.lua -c returns --cassette tests/cassettes/analyst.json
--   obelus calls -c returns
--   obelus log -c returns
--   obelus run plans/analyst.lua -i question="How did the year go, by quarter?"     (asks the model)

return {
  context = {
    Message.system(
      "You are the analyst of a shop for garden tools. Look at the table before you query it, and at results before you conclude. "
        .. "Say only what the results say, with their numbers."
    ),
    { type = "input", schema = { type = "object", properties = { question = { type = "string" } }, required = { "question" } } },
    Message.input({ question = "Which product comes back too often, and is it one region or all of them?" }),
  },
  offer = { "describe", "query", "chart", "conclude", "report" },
  schema = {
    type = "object",
    properties = { report = { type = "string" }, chart = { type = "string" } },
    required = { "report", "chart" },
  },
}
