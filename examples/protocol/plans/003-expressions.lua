-- || in an output path separates possible outcomes, && writes to several places
-- at once.
return {
  calls = {
    { _tool = "verifyUser", userId = "perfect-stranger", _outputPath = "†state.user.verified || †state.user.failed" },
    { _tool = "greetUser", userName = "†state.user.verified.id", _outputPath = "†state.greeting" }, -- skipped
    {
      _tool = "generateSummary",
      text = "Long body of text here...",
      _outputPath = "†state.user.summary && †state.audit.summary",
    },
  },
  output = "†state",
}
