-- The tools of the documents that Obelus goes back to, as small as they can be.

Activity.register("updateUserStatus", function(call) return call.newStatus end)

Activity.register("greetUser", function(call) return "Hello, " .. call.userName .. "!" end)

-- The schema can leave the output path to the call, or decide it.
Tool.register("summariseUser", {
  properties = {
    user = { type = "object" },
    _outputPath = { type = "string", const = "†data.user.summary" },
  },
})
Activity.register("summariseUser", function(call) return call.user.name .. " is " .. call.user.status end)

Activity.register("verifyUser", function(call)
  if call.userId == "perfect-stranger" then
    return nil, "nobody knows " .. call.userId
  end
  return { id = call.userId }
end)

Activity.register("generateSummary", function(call) return call.text:sub(1, 9) end)

Tool.register("think", { description = "A thought: it is recorded, and stored nowhere." })
Activity.register("notify", function(call) print("notified " .. call.whom) end)

Activity.register("sendMessage", function(call) return call.recipientId .. " was sent: " .. call.message end)

-- An activity sees of the context what the call's scopes grant.
Activity.register("logEvent", function(call, context) return { event = call.eventName, userId = context.state.userId } end)

Activity.register("shorten", function(call) return call.text:match("^[^,]+") end)
Delegate.register("SummarizerAgent", {
  context = { Message.system("You are an expert summarizer.") },
  calls = { { _tool = "shorten", text = "†state.articleText", _outputPath = "†state.summary" } },
  output = "†state.summary",
})

Activity.register("lookUp", function(call)
  return ({ Hello = "Hallo", Bonjour = "Guten Tag" })[call.text]
end)
Delegate.register("translatorDelegate", {
  context = { Message.system("You are a translator.") },
  calls = { { _tool = "lookUp", text = "†state.text", _outputPath = "†state.translation" } },
  output = "†state.translation",
})
