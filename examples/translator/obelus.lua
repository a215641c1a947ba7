-- The model needs the variable OPENAI_API_KEY, unless its answers come from a cassette.
return {
  model = "translator",
  models = {
    translator = { provider = "openai", model = "gpt-5-mini", effort = "low" },
  },
  budget = { requests = 30 },
  allow = { read = { "data" } },
}
