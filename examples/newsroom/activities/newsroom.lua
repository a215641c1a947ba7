local str = require("str")

Activity.register("split", function(call)
  local sentences = {}
  for sentence in call.text:gmatch("[^.]+%.") do
    sentences[#sentences + 1] = str.trim(sentence)
  end
  return sentences
end)

-- The sentence with the most words that the text repeats.
Activity.register("pick", function(call)
  local counts = {}
  for word in call.text:lower():gmatch("%a%a%a+") do
    counts[word] = (counts[word] or 0) + 1
  end
  local best, most = nil, -1
  for _, sentence in ipairs(call.sentences) do
    local score = 0
    for word in sentence:lower():gmatch("%a%a%a+") do
      score = score + counts[word] - 1
    end
    if score > most then
      best, most = sentence, score
    end
  end
  return best
end)

-- A delegate: a plan of its own, in a context of its own, that knows of its
-- caller what the call's scopes grant and nothing else. A language model would
-- fit in its place.
Delegate.register("summariser", {
  context = { Message.system("You summarise an article in one of its own sentences.") },
  calls = {
    { _tool = "split", text = "†state.text", _outputPath = "†state.sentences" },
    { _tool = "pick", text = "†state.text", sentences = "†state.sentences", _outputPath = "†state.summary" },
  },
  output = "†state.summary",
})

Activity.register("layOut", function(call)
  local lines = {}
  for _, summary in ipairs(call.summaries) do
    lines[#lines + 1] = "- " .. summary.title .. ": " .. summary.text
  end
  return table.concat(lines, "\n")
end)
