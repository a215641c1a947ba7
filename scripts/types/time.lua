---@meta time

-- Written by obelus types, which writes it again: changes are lost.

---time: points in time as seconds since 1970, in UTC, with microseconds; layouts as in
---strftime, RFC 3339 without one, with a fraction if there is one. %f is six digits of it,
---%L three: %H:%M:%S.%L
---@class obelus.time
local time = {}

---@param t number in the years 0 to 9999
---@param layout? string
---@return string text
function time.format(t, layout) end

---@return number seconds with fractions
function time.now() end

---Of zones, %z reads an offset like +0100, and %Z the names UTC, GMT and Z alone;
---without a zone it is UTC. Days, months, hours, minutes and seconds may have one
---digit; seconds may have a fraction. A leap second, :60, is the second after it.
---@param text string
---@param layout? string
---@return number? seconds
---@return string? err
function time.parse(text, layout) end

---@param seconds number
function time.sleep(seconds) end

return time
