-- What a project for real has: a schedule, what happens when it fails, what a
-- person decides about, and for how long its history is kept.
return {
  allow = {
    net = { "127.0.0.1" }, -- the shop
    write = { "reports" },
  },
  grants = "asked", -- an activity that asks for nothing gets nothing
  approve = { "release" },
  keep = { done = "90d", failed = "365d" },
  serve = {
    schedules = {
      nightly = {
        plan = "plans/nightly.lua",
        cron = "0 3 * * *",
        zone = "Europe/Berlin",
        input = { shop = "http://127.0.0.1:8099" },
        overlap = "queue", -- a night that waits for a person does not lose the next
        catchup = "12h", -- a machine that was off in the night makes up for it in the morning
      },
    },
    on = { failed = "plans/alert.lua" },
  },
}
