-- A delegate runs in a context of its own: its own messages, and what the call's
-- scopes grant. See it by: obelus contexts
return {
  context = { { type = "state", articleText = "A long and complex article..., of which little remains" } },
  calls = { { _tool = "summarizeArticle", _delegate = "SummarizerAgent", _scopes = { "state" }, _outputPath = "†summary" } },
  output = "†summary",
}
