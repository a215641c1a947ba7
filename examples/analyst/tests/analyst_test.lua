local test = require("test")

local units = { name = "units", of = "sum", column = "units" }

describe("a query", function()
  it("groups, adds up and sorts", function()
    local got = test.activity("query", { by = { "product" }, measures = { units }, sort = "units", _outputPath = "†result.x" })
    assert.equal(5, #got.rows)
    assert.same({ product = "secateurs", units = 601 }, got.rows[1])
  end)

  it("tells which columns there are", function()
    local got, failure = test.activity("query", { by = { "country" }, measures = { units }, _outputPath = "†result.x" })
    assert.is_nil(got)
    assert.matches('^there is no column "country"; there are date, month,', failure.message)
  end)
end)

describe("the analyst", function()
  local run

  before_each(function()
    test.cassette("analyst")
    run = test.plan("plans/analyst.lua")
  end)

  it("answers the question", function()
    assert.equal("done", run.status)
    assert.matches("^# What comes back\n\nThe hose comes back too often", run.output.report)
    assert.matches("^<svg ", run.output.chart)
  end)

  it("goes on from what is refused, and from what fails", function()
    local told = {}
    for i, call in ipairs(run.calls) do
      told[i] = call.call .. " " .. call.tool .. " " .. call.status
    end
    assert.same({
      "1.1 describe done",
      "3.1 query done",
      "3.2 query failed", -- a column that there is not
      "4.1 query done",
      "5.1 conclude done",
      "5.2 chart done",
      "5.3 report done",
    }, told)
  end)
end)
