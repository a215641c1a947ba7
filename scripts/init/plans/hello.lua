-- obelus run plans/hello.lua
-- obelus run plans/hello.lua -i name=Ada

return {
  calls = {
    { _tool = "hello", name = '†input.name || "world"', _outputPath = "†state.greeting" },
  },
  output = { greeting = "†state.greeting" },
}
