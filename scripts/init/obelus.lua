-- The settings of this project. An empty table will do: these are examples.
---@type obelus.Settings
return {
  -- timeout = "30s",             -- of one activity
  -- parallel = 8,                -- calls that run at once
  -- allow = { read = {"data"} }, -- scripts can do nothing that is not allowed
}
