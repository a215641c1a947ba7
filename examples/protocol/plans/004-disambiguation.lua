-- Two users in the context; the scopes say which of them is meant. For a call
-- that a model answers that is a nudge: see what it would be shown by
--   obelus log --model --scopes input
return {
  context = {
    { type = "state", currentUser = { id = "user_A", name = "Alice" } },
    {
      type = "input",
      mentionedUser = { id = "user_B", name = "Bob" },
      instruction = "Send a welcome message to the user mentioned above.",
    },
  },
  calls = {
    { _tool = "sendMessage", _scopes = { "input" }, recipientId = "user_B", message = "Welcome, Bob!", _outputPath = "†state.sent" },
  },
  output = "†state.sent",
}
