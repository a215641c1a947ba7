local test = require("test")

describe("the mailbox", function()
  local run

  before_each(function()
    test.cassette("triage")
    run = test.plan("plans/triage.lua")
  end)

  it("is classified, but for what can't be read", function()
    assert.equal("done", run.status)
    local count = 0
    for _ in pairs(run.context.state.found) do
      count = count + 1
    end
    assert.equal(49, count)
    assert.equal("the text is not readable", run.context.state.unclear.m38.message)
  end)

  it("is not ordered about by a message", function()
    assert.equal("spam", run.context.state.found.m13.category)
    assert.equal("legal", run.context.state.found.m06.category)
    assert.is_nil(run.context.state.letters.m13)
  end)

  it("is answered in the language of the message", function()
    assert.matches("^Bonjour Luc Perrin,", run.context.state.letters.m47.text)
    assert.matches("Bestellung A%-1019 storniert", run.context.state.letters.m15.text)
    assert.equal("Re: † Heinrich Brandt, Kundenkonto", run.context.state.letters.m15.subject)
  end)

  it("has its serious messages escalated by team", function()
    assert.same({
      accounts = { team = "accounts", messages = 1 },
      legal = { team = "legal", messages = 3 },
      operations = { team = "operations", messages = 4 },
    }, run.context.state.rung)
  end)
end)

it("leaves what can't be read to a person", function()
  test.model(function(question)
    if question.tool == "overview" then
      return "A quiet morning."
    end
    return nil, "it is blank"
  end)
  local run = test.plan("plans/triage.lua")
  assert.equal("done", run.status)
  assert.matches("%- m50 A%-1061: all well: it is blank$", run.output)
end)
