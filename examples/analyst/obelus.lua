-- The model needs the variable OPENAI_API_KEY, unless its answers come from a cassette.
return {
  model = "analyst",
  models = {
    analyst = { provider = "openai", model = "gpt-5-mini", reasons = false },
  },
  budget = { requests = 12 },
  allow = { read = { "data" } },
}
