---@meta env

-- Written by obelus types, which writes it again: changes are lost.

---env: variables of the environment. Each name needs the permission env.
---@class obelus.env
local env = {}

---A variable that is not set gives the default; without one that is a failure. A
---name that is not granted fails even with a default.
---@param name string
---@param default? string
---@return string? text
---@return string? err
function env.get(name, default) end

return env
