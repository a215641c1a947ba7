---@meta random

-- Written by obelus types, which writes it again: changes are lost.

---random: numbers and bytes that can't be foreseen.
---@class obelus.random
local random = {}

---@param n integer
---@return string bytes
function random.bytes(n) end

---A number from 0, below 1.
---@return number
function random.float() end

---A whole number from min to max, both included.
---@param min integer
---@param max integer
---@return integer
function random.int(min, max) end

return random
