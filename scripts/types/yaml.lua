---@meta yaml

-- Written by obelus types, which writes it again: changes are lost.

---yaml: YAML 1.2, of one document.
---@class obelus.yaml
local yaml = {}

---null alone is json.null, which is no failure; in a table it is nil, in an array
---json.null. Text without quotes is read by the core schema of YAML 1.2: yes, 1_000
---and 2024-01-01 are text, 010 is ten, whole numbers beyond 2^53 are text of their
---digits. A list or an object of JSON is read as json.decode reads it. Refused are
---names given twice, tags of one's own, infinities, more than 1 MiB or 128 levels,
---aliases for more than a million values or 64 MiB of text; and, since the library
---does not read them or takes too much memory: two \u escapes for one character
---(\U0001F600 is read), U+2028 outside an escape, %YAML 1.3, and more than 50,000
---commas in a text with brackets that is no JSON.
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
