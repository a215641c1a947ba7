---@meta re

-- Written by obelus types, which writes it again: changes are lost.

---re: regular expressions, in the syntax of RE2. Positions are in bytes from 1; a
---group that took no part in the match gives false.
---@class obelus.re
local re = {}

---@param s string
---@param pattern string
---@param init? integer
---@return integer? first
---@return integer? last
---@return string|false ... captures
function re.find(s, pattern, init) end

---The replacement is text, in which %0 is the match, %1 to %9 its captures and %%
---a %; a table, asked for the first capture; or a function, called with them.
---@param s string
---@param pattern string
---@param replacement string|table|fun(...: string|false): any
---@param n? integer only the first n
---@return string s
---@return integer count
function re.gsub(s, pattern, replacement, n) end

---The captures; the match if the pattern has none.
---@param s string
---@param pattern string
---@param init? integer
---@return string|false|nil capture
---@return string|false ... captures
function re.match(s, pattern, init) end

---The parts between the matches; of the first n at most, the last with all that
---is left.
---@param s string
---@param pattern string
---@param n? integer
---@return string[] parts
function re.split(s, pattern, n) end

return re
