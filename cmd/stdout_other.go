//go:build !cgo || !unix

package cmd

// stdoutClosed reports whether the program was started without a standard output, which can't
// be told here.
func stdoutClosed() bool { return false }
