---@meta json

-- Written by obelus types, which writes it again: changes are lost.

---json: JSON, with null, empty arrays and long whole numbers kept.
---@class obelus.json
local json = {}

---What stands for JSON's null where nil would leave a hole.
---@class obelus.json.null
json.null = {}

---Makes a table an array even if it is empty; a new one without a table.
---@generic T: table
---@param t? T
---@return T
function json.array(t) end

---null alone is json.null, which is no failure; in a table it is nil, in an array
---json.null.
---@param text string
---@return any value
---@return string? err
function json.decode(text) end

---The keys come out sorted. A value that JSON does not have raises.
---@param value any
---@param options? { indent?: integer|string } indent: how many spaces, up to 10, or the spaces and tabs themselves
---@return string text
function json.encode(value, options) end

return json
