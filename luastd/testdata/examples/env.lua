local env = require("env")
local key = assert(env.get("API_KEY"))
local region = assert(env.get("REGION", "eu"))
assert(key == "k-123" and region == "eu")

local home, err = env.get("HOME", "/")
assert(home == nil and err == 'reading the variable "HOME" is not allowed: run with --allow-env=HOME or set allow.env in obelus.lua', err)
