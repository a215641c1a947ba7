local mail = "Where is my order?!"
local model = require("model")
local answer = assert(model.ask {
  prompt = "Is this mail angry?", data = { mail = mail }, model = "fast",
  schema = { type = "object", properties = { angry = { type = "boolean" } } },
})
assert(answer.angry == true)

local refused, err = model.ask { prompt = "Is it?", model = "wise" }
assert(refused == nil and err:find("run with --allow-model=wise or set allow.model in obelus.lua", 1, true), err)
