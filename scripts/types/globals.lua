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

---@class obelus.Request
---@field calls? obelus.Call[]|fun(context: obelus.Context): obelus.Request
---@field plan? obelus.Call[]|fun(context: obelus.Context): obelus.Request another word for calls
---@field context? table[] messages
---@field mode? "eager"|"lazy"
---@field model? string of a request without calls: the model that plans it
---@field offer? string[] the tools that it may plan with; all
---@field output? any
---@field refusals? integer of its plans, in a row, that end the run; 3
---@field bridge? boolean as a delegate: show it arguments that do not fit its input
---@field schema? table a JSON Schema for the final output
---@field scopes? string[] what a function or a model gets of the context
---@field tools? table<string, table>

---Permissions. true is all but model, which is named. So are the _allow of a tool, and what
---an activity asks for.
---@alias obelus.Allow boolean|{ env?: boolean|string[], model?: boolean|string[], net?: boolean|string[], read?: boolean|string[], write?: boolean|string[] }

---What obelus.lua returns.
---@class obelus.Settings
---@field allow? obelus.Allow what scripts may do to the world; nothing
---@field approve? "never"|"always"|"planned"|"scopes"|string|string[] which calls are held for a person
---@field budget? { cost?: number, requests?: integer, tokens?: integer } of one run, for models
---@field db? string the log; .obelus/log.db
---@field drain? number|string for calls that a run leaves behind; "5s"
---@field expressions? integer how many that take long are evaluated at once
---@field formats? boolean false makes format in schemas a note; true
---@field grants? "asked"|"allowed" "asked" gives an activity what it asks for alone; "allowed"
---@field isolate? "process"|"none"|false activities run in processes of their own
---@field keep? { cancelled?: number|string, done?: number|string, failed?: number|string, none?: number|string } how long a server keeps contexts, by the status of their run
---@field limits? table<string, integer|string>
---@field log? "debug"|"info"|"warn"|"error" the least level of what run and serve show of their log and that of scripts; info by default
---@field logs? { keep?: number|string } what is kept of what scripts print and log: bytes of each call, such as "256KB"; 0 for nothing
---@field model? string|obelus.Model the default one: a name of models, or "provider/model"
---@field models? table<string, obelus.Model>
---@field parallel? integer calls that run at once; 8
---@field serve? { addr?: string, body?: integer|string, hooks?: table<string, obelus.Hook>, on?: { done?: string, failed?: string, held?: string }, otlp?: string|{ url: string, content?: boolean, headers?: table<string, string|{ env: string }> }, queue?: integer, resume?: boolean, runs?: integer, schedules?: table<string, obelus.Schedule>, timeout?: number|string, tokens?: table<string, { env: string, may: "read"|"run"|"decide" }> } of obelus serve
---@field synchronous? "full"|"normal" of SQLite
---@field ticks? integer of one run; 100
---@field timeout? number|string of one activity; "30s"

---An address for requests of other programs, under serve.hooks in obelus.lua.
---@class obelus.Hook
---@field header? string has the signature; "X-Hub-Signature-256"
---@field headers? string[] that are part of the input
---@field once? string the header with the id of a delivery
---@field plan? string the file of the plan that a request starts
---@field replay? boolean once counts though the signature does not cover it; false
---@field secret? string the environment variable with the secret
---@field to? string the context of a run that waits for the request: "order-{body.order}"
---@field verify "hmac-sha256"|"none"

---A plan that a server runs again and again, under serve.schedules in obelus.lua.
---@class obelus.Schedule
---@field catchup? number|string how late the newest missed run may start; "1h"
---@field cron string "0 3 * * *", or a word such as "@daily"
---@field input? table of each run, beside due
---@field overlap? "skip"|"queue"|"all" while the run before has not ended
---@field plan string its file
---@field zone? string "Europe/Berlin"; "UTC"

---A model, under models in obelus.lua.
---@class obelus.Model
---@field batch? integer|"instances" calls that one request answers; 16
---@field concurrency? integer requests at once, of the process
---@field dialect? string of JSON Schema: "openai", "anthropic", "gemini", "llama", "ollama", "plain"
---@field effort? string of reasoning, as the provider has it
---@field extra? table merged into the body of each request
---@field headers? table<string, string|{ env: string }>
---@field insecure? boolean http is allowed beyond this machine
---@field keep? boolean has the log keep its requests and answers
---@field key? { env: string } the variable with the key
---@field max_schema? integer|string size up to which a schema is sent in its exact form
---@field max_tokens? integer of an answer; 8192
---@field mode? "auto"|"schema"|"tools"|"json"|"text" how it is held to a schema
---@field model? string as the provider calls it
---@field price? { input?: number, output?: number, cache_read?: number, cache_write?: number } US dollars for a million tokens
---@field provider? string "openai", "anthropic", "gemini", "ollama", "vllm", "llama", "openrouter", "azure"
---@field reasons? boolean calls that it plans say why; true
---@field repairs? integer questions again about an answer that breaks its schema; 2
---@field rpm? integer requests a minute, of the process
---@field seed? integer
---@field strict? boolean it is an error to fall back on a looser mode
---@field temperature? number
---@field think? boolean its answers begin with a field for its thoughts
---@field timeout? number|string of one question; "2m"
---@field top_p? number
---@field tpm? integer tokens a minute, of the process
---@field tries? integer of one request over the network; 4
---@field url? string of the API
---@field window? integer tokens that a prompt may have
---@field wire? "openai"|"anthropic"

---@class obelus.ActivityOptions
---@field allow? obelus.Allow what it asks for; its calls get what the project grants of that
---@field timeout? number|string seconds, or "5s"; 30s
---@field retries? integer after the first attempt; 0
---@field backoff? number|string before the first retry; doubles
---@field concurrency? integer calls of it that run at once
---@field idempotent? boolean false if it must not run twice
---@field reuse? boolean keep the script's state for later calls

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
