local uuid = require("uuid")
local id = uuid.v7()
assert(#id == 36 and id:sub(15, 15) == "7" and uuid.v7() > id)
assert(uuid.v4():match("^%x+%-%x+%-4%x+%-[89ab]%x+%-%x+$"))
