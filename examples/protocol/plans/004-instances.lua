-- Two instances, two delegates, side by side; each sees its own instance alone.
-- What they wrote: obelus get state.translation --instance ①
return {
  context = {
    { type = "state", _instance = "①", text = "Hello" },
    { type = "state", _instance = "②", text = "Bonjour" },
  },
  calls = {
    { _tool = "translate", _delegate = "translatorDelegate", _instance = "①", _scopes = { "state" }, _outputPath = "†state.translation" },
    { _tool = "translate", _delegate = "translatorDelegate", _instance = "②", _scopes = { "state" }, _outputPath = "†state.translation" },
  },
}
