local template = require("template")
local text = assert(template.render([[
Dear {{customer.name}},
{{#each orders}}
  {{@index}}. {{title}}{{#if paid}} (paid){{else}} - {{price}} EUR{{/if}}
{{else}}
  no orders
{{/each}}
]], { customer = { name = "Ada" }, orders = { { title = "Book", price = 12 } } }))
assert(text == "Dear Ada,\n  1. Book - 12 EUR\n", text)

local page = assert(template.render("<b>{{name | html}}</b> {{list | json}}", { name = "<Ada>", list = { 1, 2 } }))
assert(page == "<b>&lt;Ada&gt;</b> [1,2]")

local nothing, err = template.render("one\n{{tow}}", { two = 2 })
assert(nothing == nil and err == "line 2: unknown name tow", err)
