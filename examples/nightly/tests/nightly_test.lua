local test = require("test")

describe("a night", function()
  local asked

  -- a shop that is busy for the first requests
  local function shop(busy)
    asked = 0
    test.http(function(request)
      if request.method == "POST" then
        return { body = { order = "b2" } }
      end
      asked = asked + 1
      if asked <= busy then
        return { status = 503, body = "busy" }
      end
      return { body = { { id = "a1", customer = "Ada", total = 20 }, { id = "b2", customer = "Brouwer", total = 5000 } } }
    end)
  end

  local function night()
    return test.plan("plans/nightly.lua", { input = { shop = "http://127.0.0.1:8099", due = "2026-11-26T02:00:00Z" } })
  end

  it("asks a busy shop again, and reports the orders", function()
    shop(2)
    local run = night()
    assert.equal("done", run.status)
    assert.equal(3, asked)
    assert.matches("| b2 | Brouwer | 5000.00 | released |", run.output, 1, true)
    assert.matches("2 orders, 5020.00 in all.", run.output, 1, true)
  end)

  it("ends when the shop stays busy", function()
    shop(100)
    local run = night()
    assert.equal("failed", run.status)
    assert.equal(6, asked)
  end)
end)
