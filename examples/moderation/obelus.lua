return {
  allow = { read = { "data" } },
  parallel = 8,
}
