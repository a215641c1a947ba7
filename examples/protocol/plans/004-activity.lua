-- The call gives the event; who the user is, the activity reads from the state
-- that its scopes grant.
return {
  context = { { type = "state", userId = "user_A" } },
  calls = { { _tool = "logEvent", _scopes = { "state" }, eventName = "user_login", _outputPath = "†log.last" } },
  output = "†log.last",
}
