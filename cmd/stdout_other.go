//go:build !cgo || !unix

package cmd

// stdoutClosed reports whether the program was started without a standard output. Here that can't
// be known.
func stdoutClosed() bool { return false }
