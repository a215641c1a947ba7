-- Activities have what they ask for, as far as allow grants it: only loadFigures reads files.
return {
  allow = { read = { "data" } },
  grants = "asked",
}
