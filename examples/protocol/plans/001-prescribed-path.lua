-- The tool's schema prescribes the output path; the call need not give it.
return {
  context = { { type = "data", data = { user = { name = "Alex", status = "active" } } } },
  calls = { { _tool = "summariseUser", user = "†data.user" } },
  output = "†data.user.summary",
}
