//go:build !linux

package term

// dropInput drops what was typed on a terminal and nobody has read, where there
// is a way to.
func dropInput(int) {}
