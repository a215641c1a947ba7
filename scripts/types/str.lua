---@meta str

-- Written by obelus types, which writes it again: changes are lost.

---str: what Lua's string leaves out. Parts are plain text, not patterns.
---@class obelus.str
local str = {}

---@param s string
---@param part string
---@return boolean
function str.contains(s, part) end

---@param s string
---@param suffix string
---@return boolean
function str.ends(s, suffix) end

---The lines, without their ends.
---@param s string
---@return string[]
function str.lines(s) end

---@param s string
---@param old string
---@param new string
---@param count? integer only the first so many
---@return string
function str.replace(s, old, new, count) end

---Without a separator the words between white space.
---@param s string
---@param separator? string
---@return string[]
function str.split(s, separator) end

---@param s string
---@param prefix string
---@return boolean
function str.starts(s, prefix) end

---Without white space, or those characters, at both ends.
---@param s string
---@param characters? string
---@return string
function str.trim(s, characters) end

return str
