-- obelus test

local test = require "test"

describe("hello", function()
  it("greets by name", function()
    assert.equal("Hello, Ada!", test.activity("hello", { name = "Ada" }))
  end)

  it("greets the world when nobody is named", function()
    local run = test.plan("plans/hello.lua")
    assert.same({ greeting = "Hello, world!" }, run.output)
  end)
end)
