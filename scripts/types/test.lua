---@meta test

-- Written by obelus types, which writes it again: changes are lost.

---test: what tests run, and what they run it with. In files of tests alone.
---@class obelus.test
local test = {}

---@class obelus.test.PlanOptions
---@field input? table
---@field tools? table<string, fun(call: obelus.Call, context: obelus.Context, tool: table, key: string): any, any> run these in place of activities
---@field context? obelus.Context

---@class obelus.test.Run
---@field status string
---@field output any
---@field error? string
---@field calls { call: string, tool: string, status: string, error?: table, reason?: string, waiting_on?: string[] }[] of all ticks
---@field context obelus.Context

---Runs an activity: its result, or nil and the fields of the failure. References in
---the call are to the context. A call that its tool refuses is raised.
---@param name string
---@param call? table
---@param context? obelus.Context
---@return any result
---@return any failure
---@return string? path that the result goes to by Output.to
function test.activity(name, call, context) end

---Has models answer as tests/cassettes/NAME.json records it. What is not recorded fails the
---test; obelus test --record asks for it.
---@param name string
function test.cassette(name) end

---What time it is from now on; the real one without an argument.
---@param seconds? number
function test.clock(seconds) end

---Answers what the test, and what it runs, ask of the network. An array among the headers of
---an answer is a field for each element.
---@param fn fun(request: { method: string, url: string, headers: table<string, string>, body: string }): { status?: integer, headers?: table<string, string|string[]>, body?: any }?, string?
function test.http(fn) end

---Answers in place of models: calls that no activity runs; plans that a model is to make
---(plan is true), for which it returns a table with calls and output; and what activities
---ask by model.ask (ask is true, with prompt and data).
---@param fn fun(question: { plan?: boolean, ask?: boolean, prompt?: string, data?: any, tool?: string, call?: table, context?: table, schema?: any, thoughts?: table[], tick?: integer, mode?: string, tools?: string[], last?: table[], errors?: table[] }): any, any
function test.model(fn) end

---Runs a plan in a log of its own, until it ends or halts. Nothing is held for a
---person. What is wrong with the plan or its input is raised.
---@param file string
---@param options? obelus.test.PlanOptions
---@return obelus.test.Run
function test.plan(file, options) end

return test
