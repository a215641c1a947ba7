-- References in parameters read, output paths write. Calls on data that is not
-- there yet make a chain.
return {
  context = { { type = "input", userName = "Ada" } },
  calls = {
    { _tool = "greetUser", userName = "†input.userName", _outputPath = "†state.greeting" },
    { _tool = "generateSummary", text = "†state.greeting", _outputPath = "†state.short" },
  },
  output = "†state",
}
