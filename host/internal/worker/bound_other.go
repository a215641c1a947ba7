//go:build !linux || race

package worker

// bound would keep this process from taking much more memory than a script may.
// Here, and under the race detector, which takes much itself, the script's own
// limit must do.
func bound(int) {}
