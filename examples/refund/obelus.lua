return {
  allow = { read = { "data" } },
}
