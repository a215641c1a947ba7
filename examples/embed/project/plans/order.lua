return {
  calls = {
    { _tool = "reserve", item = "†input.item", count = "†input.count", _outputPath = "†state.order || †state.sorry" },
    { _tool = "charge", amount = "†(†state.order.count * †input.price)", _outputPath = "†state.payment" },
  },
  output = "†state",
}
