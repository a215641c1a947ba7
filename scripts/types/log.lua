---@meta log

-- Written by obelus types, which writes it again: changes are lost.

---log: what the program's own log gets.
---@class obelus.log
local log = {}

---@param message string
---@param fields? table<string, any>
function log.debug(message, fields) end

---@param message string
---@param fields? table<string, any>
function log.error(message, fields) end

---@param message string
---@param fields? table<string, any>
function log.info(message, fields) end

---@param message string
---@param fields? table<string, any>
function log.warn(message, fields) end

return log
