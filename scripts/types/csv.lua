---@meta csv

-- Written by obelus types, which writes it again: changes are lost.

---csv: tables of text, a line for each row. A quote is text in a field that does not begin
---with one; a carriage return alone ends a line too.
---@class obelus.csv
local csv = {}

---Each row is an array of strings; with a header it is a table by name: true
---takes the names from the first line, a list gives them for all lines.
---@param text string
---@param options? { header?: boolean|string[], comma?: string }
---@return table[]? rows
---@return string? err
function csv.decode(text, options) end

---Rows are arrays, or tables by name if a header is given: a list of the fields,
---or true for all that rows have, sorted. A row has no more fields than the header.
---@param rows table[]
---@param options? { header?: boolean|string[], comma?: string }
---@return string text
function csv.encode(rows, options) end

return csv
