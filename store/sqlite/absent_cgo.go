//go:build !cgo

package sqlite

// Without a C compiler Go leaves SQLite out, and its errors about the missing parts do not say why.
// The compiler reports this error before those, as the first type of the first file.
type absent a_C_compiler_such_as_gcc_is_needed_and_CGO_ENABLED_must_not_be_0
