-- A call's result is added as a new message; what it does not say stays as it
-- was. See them by: obelus log --json, and without what is hidden from models
-- by: obelus log --model
return {
  context = { { type = "data", data = { user = { name = "Alex", status = "active" } } } },
  calls = {
    { _tool = "updateUserStatus", newStatus = "inactive", _outputPath = "†data.user.status" },
  },
  output = { status = "†data.user.status", name = "†data.user.name" },
}
