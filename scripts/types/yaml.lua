---@meta yaml

-- Written by obelus types, which writes it again: changes are lost.

---yaml: YAML 1.2, of one document.
---@class obelus.yaml
local yaml = {}

---null alone is json.null, which is no failure; in a table it is nil, in an array
---json.null.
---@param text string
---@return any value
---@return string? err
function yaml.decode(text) end

---Names come out sorted, each on a line of its own. A value that JSON does not
---have raises.
---@param value any
---@return string text
function yaml.encode(value) end

return yaml
