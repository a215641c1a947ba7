-- A Markdown report from figures in JSON. All input may be left out: "||" gives
-- the first reference that exists, so each has something to fall back on.
--
--   obelus run plans/report.lua
--   obelus run plans/report.lua -i title="Our summer" -i months:=3 -i remark="Warm."
--   obelus run plans/report.lua -i 'channels:=["North","Harbour"]'   (no such figures)

return {
  calls = {
    {
      _tool = "loadFigures",
      file = '†input.file || "data/figures.json"',
      _outputPath = "†data.figures",
    },

    -- the last months, three or as many as the input says
    {
      _tool = "totals",
      months = "†(†data.figures.months[-(†input.months || 6):])",
      channels = '†input.channels || ["North", "South", "Online"]',
      _outputPath = "†state.totals || †state.problem",
    },

    {
      _tool = "renderReport",
      title = '†input.title || "Sales of " + †data.figures.company',
      currency = '†input.currency || "euros"',
      totals = "†state.totals",
      remark = '†input.remark || "No remarks."',
      _outputPath = "†state.report",
    },
  },

  -- the report, or what stood in its way
  output = "†state.report || †state.problem.message",
}
