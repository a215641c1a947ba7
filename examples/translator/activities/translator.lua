-- No activity runs render: a model answers it.
Tool.register("render", {
  description = "Translate text into the language to. Keep what stands in braces as it is.",
  properties = {
    text = { type = "string" },
    to = { type = "string" },
    note = { type = "string", description = "what was wrong with a translation before" },
    _output = { type = "string", description = "the translation alone" },
  },
  required = { "text", "to" },
})

Tool.register("compare", {
  description = "Fails if a translation lacks a place in braces of the text.",
  properties = { text = { type = "string" }, translation = { type = "string" } },
  required = { "text", "translation" },
})

Activity.register("compare", function(call)
  for place in call.text:gmatch("{%a+}") do
    if not call.translation:find(place, 1, true) then
      return nil, "the translation lacks " .. place
    end
  end
  return call.translation
end)

-- A delegate: a plan of its own, in a context of its own. Of its caller it sees the parameters of the
-- call, as †input, and what the call's scopes grant; its system message is its own.
Delegate.register("translator", {
  context = {
    Message.system("You are a translator of the texts of a shop. Address the customer politely, and be as short as the original."),
    {
      type = "input",
      schema = { type = "object", properties = { to = { enum = { "de", "en", "fr" } } }, required = { "to" } },
    },
  },
  calls = {
    { _tool = "render", text = "†state.text", to = "†input.to", _scopes = { "state" }, _outputPath = "†draft" },
    { _tool = "compare", text = "†state.text", translation = "†draft", _outputPath = "†good || †problem" },
    -- Only where the comparison fails is the model asked once more.
    { _tool = "render", text = "†state.text", to = "†input.to", note = "†problem.message", _scopes = { "state" }, _outputPath = "†second" },
    { _tool = "compare", text = "†state.text", translation = "†second", _outputPath = "†mended" },
  },
  output = "†mended || †good",
})

Tool.register("layOut", {
  description = "Sorts translations by language and name.",
  properties = { texts = { type = "array", items = { type = "object", required = { "id", "to", "text" } } } },
  required = { "texts" },
})

Activity.register("layOut", function(call)
  local languages = {}
  for _, text in ipairs(call.texts) do
    languages[text.to] = languages[text.to] or {}
    languages[text.to][text.id] = text.text
  end
  return languages
end)
