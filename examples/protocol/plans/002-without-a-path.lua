-- Without an output path a call that no activity runs is a thought, and one that
-- an activity runs is sent on its way: neither leaves anything in the context.
return {
  calls = {
    { _tool = "think", about = "whom to tell" },
    { _tool = "notify", whom = "the team" },
    { _tool = "updateUserStatus", newStatus = "inactive", _outputPath = "†state.status" },
  },
  output = "†state",
}
