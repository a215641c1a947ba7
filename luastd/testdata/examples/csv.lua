local csv = require("csv")
local text = "name;age\nAda;36\n"
local rows = assert(csv.decode(text, { header = true, comma = ";" }))
assert(rows[1].name == "Ada" and rows[1].age == "36")
local out = csv.encode(rows, { header = { "name", "age" } })
assert(out == "name,age\nAda,36\n")
