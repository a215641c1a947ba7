-- A claim for expenses. A small one is paid at once; a large one is held for a
-- person, who approves it, corrects the amount, or rejects it with a reason.
-- That may take weeks: the run ends with exit status 3, and any process goes on
-- with it later.
--
--   obelus run plans/expenses.lua -c claim-7 -i employee=Ada -i 'lines:=[{"what": "train", "amount": 420}]'
--   obelus approvals -c claim-7
--   obelus approve 1.4 -c claim-7 --set amount:=400
--   obelus resume -c claim-7

return {
  context = {
    { type = "state", policy = { withoutAsking = 100 } },
    {
      type = "input",
      schema = {
        type = "object",
        properties = {
          employee = { type = "string" },
          lines = { type = "array", items = { type = "object", required = { "what", "amount" } } },
        },
        required = { "employee", "lines" },
      },
    },
  },

  calls = {
    { _tool = "addUp", employee = "†input.employee", lines = "†input.lines", _outputPath = "†state.claim" },
    { _tool = "judge", claim = "†state.claim", _outputPath = "†state.small || †state.large" },

    { _tool = "paySmall", employee = "†state.small.employee", amount = "†state.small.total", _outputPath = "†state.receipt" },
    {
      _tool = "payLarge",
      employee = "†state.large.employee",
      amount = "†state.large.total",
      _outputPath = "†state.receipt || †state.refusal", -- a rejection goes to the last
    },

    { _tool = "write", employee = "†input.employee", receipt = "†state.receipt", _outputPath = "†state.letter.paid" },
    { _tool = "write", employee = "†input.employee", refusal = "†state.refusal", _outputPath = "†state.letter.refused" },
  },

  output = "†state.letter.paid || †state.letter.refused",
}
