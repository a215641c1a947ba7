---@meta template

-- Written by obelus types, which writes it again: changes are lost.

---template: text with places for values: {{name}}, {{a.b | html}}, {{#each list}}
---… {{else}} … {{/each}}, {{#if value}} … {{else}} … {{/if}}, {{! nothing}}.
---Within #each, names are first those of the element; {{this}} is the element,
---{{@index}} its number, from 1, {{@key}} its name. In #if only false, null, an
---unknown name and an empty table do not hold. Filters are html and json.
---@class obelus.template
local template = {}

---The error names the line.
---@param template string
---@param data table
---@return string? text
---@return string? err
function template.render(template, data) end

return template
