---@meta url

-- Written by obelus types, which writes it again: changes are lost.

---url: addresses and their parts. An escape such as %2F is never taken for the character that
---it stands for; what can't stand in a URL is escaped beside those that are there.
---@class obelus.url
local url = {}

---@class obelus.url.Parts
---@field scheme? string
---@field host? string
---@field port? integer
---@field path? string keeps its escapes
---@field query? table<string, string|string[]>|string a name that is there several times is an array
---@field fragment? string keeps its escapes
---@field user? string without escapes
---@field password? string without escapes

---@param parts obelus.url.Parts
---@return string text
function url.build(parts) end

---Every byte but letters, digits and -_.~ as %XX: fit for any part of a URL.
---@param text string
---@return string
function url.escape(text) end

---The URL that a reference means in a document at base.
---@param base string
---@param ref string
---@return string? url
---@return string? err
function url.join(base, ref) end

---What the URL does not have is left out, but for path and query.
---@param text string
---@return obelus.url.Parts?
---@return string? err
function url.parse(text) end

---Every %XX as its byte; + stays.
---@param text string
---@return string? text
---@return string? err
function url.unescape(text) end

return url
