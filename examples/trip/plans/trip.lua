-- A trip is a flight, a hotel and a car, booked side by side. If one of them
-- can't be had, those that were booked are cancelled. Nobody programs the way
-- back: a cancellation reads a booking and a failure, so it runs exactly when
-- there are both, and is skipped otherwise.
--
--   obelus run plans/trip.lua -i traveller=Ada -i city=Lisbon
--   obelus run plans/trip.lua -i traveller=Ada -i city=Oslo      (there are no cars)

local parts = { "flight", "hotel", "car" }
local anyFailure = "†failed.flight || †failed.hotel || †failed.car"

local calls, booked, cancelled = {}, {}, {}

for i, what in ipairs(parts) do
  calls[#calls + 1] = {
    _tool = "book",
    what = what,
    city = "†input.city",
    traveller = "†input.traveller",
    _outputPath = "†booked." .. what .. " || †failed." .. what,
  }
  booked[i] = "†booked." .. what
end

for _, what in ipairs(parts) do
  calls[#calls + 1] = {
    _tool = "cancel",
    booking = "†booked." .. what,
    because = anyFailure,
    _outputPath = "†cancelled." .. what,
  }
  cancelled[what] = "†cancelled." .. what .. ' || "was not booked"'
end

calls[#calls + 1] = {
  _tool = "confirm",
  traveller = "†input.traveller",
  bookings = booked,
  _outputPath = "†state.itinerary",
}
calls[#calls + 1] = {
  _tool = "apologise",
  traveller = "†input.traveller",
  because = anyFailure,
  cancelled = cancelled,
  _outputPath = "†state.apology",
}

return {
  context = {
    {
      type = "input",
      schema = {
        type = "object",
        properties = { city = { type = "string" }, traveller = { type = "string" } },
        required = { "city", "traveller" },
      },
    },
  },
  calls = calls,
  output = "†state.itinerary || †state.apology",
}
