-- The model needs the variable OPENAI_API_KEY, unless its answers come from a cassette. Nothing is
-- escalated before a person has seen it.
return {
  model = "reader",
  models = {
    reader = { provider = "openai", model = "gpt-5-mini", effort = "low" },
  },
  budget = { requests = 20 },
  approve = { "escalate" },
  allow = { read = { "data" } },
}
