//go:build !linux

package term

// dropInput does nothing: here the input of a terminal can't be dropped.
func dropInput(int) {}
