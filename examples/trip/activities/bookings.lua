-- What a travel agency does, on a file of offers in place of three companies.

local fs = require("fs")

Tool.register("book", {
  description = "Books a flight, a hotel or a car in a city.",
  properties = {
    what = { enum = { "flight", "hotel", "car" } },
    city = { type = "string" },
    traveller = { type = "string" },
  },
  required = { "what", "city", "traveller" },
})

-- A booking must not be made twice: after a crash a person looks first.
Activity.register("book", { idempotent = false }, function(call)
  local offers = json.decode(assert(fs.read("data/offers.json")))[call.city] or {}
  local price = offers[call.what]
  if not price then
    return nil, { message = "no " .. call.what .. " to be had in " .. call.city, code = "sold-out" }
  end
  return { what = call.what, reference = call.what .. "/" .. call.traveller, price = price }
end)

-- The booking comes by reference from the path that book wrote to.
Activity.register("cancel", function(call)
  return { cancelled = call.booking.reference, because = call.because.message, refund = call.booking.price }
end)

Activity.register("confirm", function(call)
  local total, references = 0, {}
  for _, booking in ipairs(call.bookings) do
    total = total + booking.price
    references[#references + 1] = booking.reference
  end
  return { traveller = call.traveller, references = references, total = total }
end)

Activity.register("apologise", function(call)
  return { traveller = call.traveller, because = call.because.message, cancelled = call.cancelled }
end)
