-- An activity does the work of a call. Every call begins with what this file
-- sets at its top level, and sees nothing that another call has changed.

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
