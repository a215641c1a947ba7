---@meta base64

-- Written by obelus types, which writes it again: changes are lost.

---base64: bytes as text that any channel carries.
---@class obelus.base64
local base64 = {}

---The bytes that a text stands for. Padding may be there or not, line ends are
---passed over.
---@param text string
---@param options? { url?: boolean } url: the alphabet of URLs and file names
---@return string? bytes
---@return string? err
function base64.decode(text, options) end

---@param bytes string
---@param options? { url?: boolean } url: the alphabet of URLs and file names, without padding
---@return string text
function base64.encode(bytes, options) end

return base64
