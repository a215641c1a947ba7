---@meta http

-- Written by obelus types, which writes it again: changes are lost.

---http: requests to other machines. Each host needs the permission net.
---@class obelus.http
local http = {}

---@class obelus.http.Options
---@field headers? table<string, string|string[]> an array is sent as several fields
---@field query? table<string, any> added to the URL's own; arrays repeat their name
---@field json? any sent as the body
---@field body? string
---@field timeout? number|string seconds, or "5s"
---@field redirects? integer how many are followed: 10
---@field max_bytes? integer how long the body of the answer may be: 10 MiB

---@class obelus.http.Request: obelus.http.Options
---@field url string
---@field method? string GET without one

---A status of 400 and more is an answer like any other.
---@class obelus.http.Answer
---@field status integer
---@field headers table<string, string> by names in lower case, several of one name joined by ", "
---@field cookies string[] the text of each Set-Cookie, which can't be told apart once joined
---@field body string
local answer = {}

---The value of the body.
---@return any value
---@return string? err
function answer:json() end

---@param url string
---@param options? obelus.http.Options
---@return obelus.http.Answer?
---@return string? err
function http.get(url, options) end

---@param url string
---@param options? obelus.http.Options
---@return obelus.http.Answer?
---@return string? err
function http.post(url, options) end

---@param request obelus.http.Request
---@return obelus.http.Answer?
---@return string? err
function http.request(request) end

return http
