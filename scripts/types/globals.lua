---@meta _

-- Written by obelus types, which writes it again: changes are lost.

---What a call may have beside its parameters.
---@class obelus.Call
---@field _tool? string
---@field _at? string when it is made: "2026-01-31T09:00:00Z", or an expression
---@field _backoff? number|string pause before the second attempt: seconds or "5s"
---@field _delegate? string
---@field _after? string|string[] "†state.sent": whatever writes there comes first
---@field _if? boolean|string "†state.approved"; null, false or missing skips the call
---@field _in? number|string what passes before it is made: seconds, "3d", or an expression
---@field _instance? string "*" runs the call once for each
---@field _outputPath? string "†state.user.status"; || separates alternatives, && writes to several paths
---@field _reasoningForCall? string why it is made, for who reads the plan
---@field _outputMethod? "set"|"merge"|"assign"|"push"|"concat"
---@field _retries? integer further attempts after a failure
---@field _scopes? string[]
---@field _timeout? number|string of one attempt: seconds or "5s"
---@field [string] any

---What an activity sees of its context, by kind: what its call's scopes grant.
---@alias obelus.Context table<string, any>

---What Output.to gives.
---@class obelus.Output

---What Message.state and others give.
---@class obelus.Message
---@field type string
---@field [string] any

---What a plan's file may return.
---@alias obelus.Plan obelus.Call[]|obelus.Request|(fun(context: obelus.Context): obelus.Request)

---@class obelus.Activity
Activity = {}

---Registers the function that does the work of a tool. It gives a result, or nil
---and a failure. The key is the same whenever the call is tried, also after a crash.
---@param name string
---@param options obelus.ActivityOptions
---@param fn fun(call: obelus.Call, context: obelus.Context, tool: table, key: string): any, any
---@overload fun(name: string, fn: fun(call: obelus.Call, context: obelus.Context, tool: table, key: string): any, any)
function Activity.register(name, options, fn) end

---@class obelus.Delegate
Delegate = {}

---Registers what calls with _delegate are handed to.
---@param name string
---@param plan obelus.Plan
function Delegate.register(name, plan) end

---Messages, for the context of a plan or as the result of an activity.
---@class obelus.Messages
Message = {}

---@param fields table
---@return obelus.Message
function Message.data(fields) end

---@param fields table
---@return obelus.Message
function Message.input(fields) end

---@param calls obelus.Call[]
---@param mode? "eager"|"lazy"
---@return obelus.Message
function Message.plan(calls, mode) end

---@param fields table
---@return obelus.Message
function Message.state(fields) end

---@param text string
---@return obelus.Message
function Message.system(text) end

---@param text string
---@return obelus.Message
function Message.text(text) end

---@param tools table<string, table>
---@return obelus.Message
function Message.tool(tools) end

---@class obelus.Outputs
Output = {}

---A result that goes to a path of its own, one of those that the call names.
---@param path string
---@param value any
---@return obelus.Output
function Output.to(path, value) end

---The value with a second † before each text that begins with one, so that a call or
---an output takes it for text.
---@generic T
---@param value T
---@return T
function literal(value) end

---The text with the daggers of its references: ref "state.a || input.b" is
---"†state.a || †input.b".
---@param references string
---@return string
function ref(references) end

---The value without the second † that a plan's function finds before each text of its
---context that begins with one.
---@generic T
---@param value T
---@return T
function text(value) end

---@class obelus.Tools
Tool = {}

---Registers what a call may say: a JSON Schema, in which _output is that of the
---result.
---@param name string
---@param schema table
function Tool.register(name, schema) end

---@type obelus.json
json = {}
