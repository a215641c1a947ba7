-- The orders of a day: fetched from the shop, the large ones released by a
-- person, a report left as Markdown. A server runs it each night, and anyone by
--
--   obelus run plans/nightly.lua -i shop=http://127.0.0.1:8099 -i due=2026-11-26T02:00:00Z
--
-- It is a function, since what is to be released is known once the orders are.

local large = 1000

local function fetch(context)
  return {
    calls = {
      {
        _tool = "fetchOrders",
        shop = "†input.shop",
        day = context.input.due:sub(1, 10),
        -- the shop is often busy at night
        _timeout = "5s",
        _retries = 5,
        _backoff = "200ms",
        _outputPath = "†state.orders",
      },
    },
  }
end

local function release(context)
  local calls, decisions = {}, {}
  local released, stopped = context.state.released or {}, context.state.stopped or {}
  for _, order in ipairs(context.state.orders) do
    -- asked again, as after a report that could not be written, it asks for no order twice
    if order.total >= large and not released[order.id] and not stopped[order.id] then
      calls[#calls + 1] = {
        _tool = "release",
        shop = "†input.shop",
        order = order.id,
        total = order.total,
        customer = text(order.customer),
        -- what a person rejects is in the report too
        _outputPath = ref("state.released." .. order.id .. " || state.stopped." .. order.id),
      }
      decisions[#decisions + 1] = ref("state.released." .. order.id)
      decisions[#decisions + 1] = ref("state.stopped." .. order.id)
    end
  end
  calls[#calls + 1] = {
    _tool = "writeReport",
    day = context.input.due:sub(1, 10),
    _scopes = { "state" },
    _after = decisions,
    _outputPath = "†state.report",
  }
  return { calls = calls, output = "†state.report" }
end

return {
  context = {
    Message.input{
      schema = {
        properties = {
          shop = { type = "string" },
          due = { type = "string", format = "date-time" },
        },
        required = { "shop", "due" },
      },
    },
  },
  calls = function(context)
    local failed = context.error
    if failed ~= nil then -- it would be asked again, up to a hundred times
      error((failed.tool or "the plan") .. ": " .. failed.error.message, 0)
    end
    if context.state == nil or context.state.orders == nil then
      return fetch(context)
    end
    return release(context)
  end,
}
