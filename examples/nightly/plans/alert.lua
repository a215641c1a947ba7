-- What a server runs when a run has failed: a note to the shop, that a person
-- sees. Its input says what happened (obelus help server).
return {
  context = {
    Message.input{
      schema = {
        properties = { context = { type = "string" }, error = { type = { "string", "null" } } },
        required = { "context" },
      },
    },
  },
  calls = {
    {
      _tool = "alert",
      shop = '†input.shop || "http://127.0.0.1:8099"',
      text = '†input.context + " has failed: " + (†input.error || "no reason")',
      _retries = 10,
      _backoff = "1m",
      _outputPath = "†state.alert",
    },
  },
  output = "†state.alert",
}
