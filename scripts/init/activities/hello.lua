-- An activity does the work of a call. This file runs again for every call, so
-- nothing that is set here outlives one.

Tool.register("hello", {
  description = "Greets somebody.",
  properties = {
    name = { type = "string", minLength = 1 },
    _output = { type = "string" },
  },
  required = { "name" },
})

Activity.register("hello", { timeout = "5s" }, function(call)
  return "Hello, " .. call.name .. "!"
end)
