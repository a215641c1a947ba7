---@meta uuid

-- Written by obelus types, which writes it again: changes are lost.

---uuid: identifiers that are unique everywhere, as in RFC 9562.
---@class obelus.uuid
local uuid = {}

---All of it random.
---@return string
function uuid.v4() end

---Begins with the machine's time: later ones sort after earlier ones.
---@return string
function uuid.v7() end

return uuid
