local log = require("log")
log.info("order received", { id = 17, lines = { "a", "b" } })
log.warn("slow", { seconds = 3.5 })
