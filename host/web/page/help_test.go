package page_test

import "obelus/store"

func encode(v any) string { return string(store.EncodeJSON(v)) }
