-- A customer wants money back. The plan looks the orders up, decides, and goes
-- one of two ways; either way it leaves a line in the audit.
--
--   obelus run plans/refund.lua -i @input.json
--   obelus run plans/refund.lua -i customerId=c-1042 -i orderId=o-501 -i today=2025-10-26

return {
  context = {
    {
      type = "input",
      schema = {
        type = "object",
        properties = {
          customerId = { type = "string" },
          orderId = { type = "string" },
          today = { type = "string" },
        },
        required = { "customerId", "orderId", "today" },
      },
    },
    { type = "state", policy = { windowDays = 30, feePercent = 2.5 } },
  },

  calls = {
    { _tool = "lookupOrders", customerId = "†input.customerId", _outputPath = "†state.history" },

    -- two alternatives: approved, or rejected
    {
      _tool = "decideRefund",
      orders = "†state.history.orders",
      orderId = "†input.orderId",
      today = "†input.today",
      _outputPath = "†state.approval || †state.rejection",
    },

    -- a fan-out: each result is written to the state and to the audit at once
    {
      _tool = "issueRefund",
      order = "†state.approval.order",
      amount = "†state.approval.amount",
      feePercent = "†state.approval.feePercent",
      _outputPath = "†state.receipt && †audit.line",
    },
    {
      _tool = "rejectRefund",
      order = "†input.orderId",
      reason = "†state.rejection.message",
      _outputPath = "†state.letter && †audit.line",
    },
  },

  output = "†state.receipt || †state.letter",
}
