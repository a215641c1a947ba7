local yaml = require("yaml")
local text = [[
defaults: &defaults { retries: 3 }
service:
  <<: *defaults
  since: 2024-01-01
  id: 12345678901234567890
]]
local config = assert(yaml.decode(text))
assert(config.service.retries == 3 and config.service.since == "2024-01-01" and config.service.id == "12345678901234567890")

local text = yaml.encode({ name = "x", ports = { 80, 443 } })
-- name: x
-- ports:
--   - 80
--   - 443
assert(text == "name: x\nports:\n  - 80\n  - 443\n", text)

local value, err = yaml.decode("a: [1, 2")
assert(value == nil and err:find("line 1", 1, true), err)
