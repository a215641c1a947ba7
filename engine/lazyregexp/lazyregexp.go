// Package lazyregexp compiles regular expressions when they are first used, since a program has
// many of them and uses few.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled pattern, for a variable of a package. The first
// call compiles it, and panics if it is wrong. The function is safe for concurrent use.
//
// TestSource_PatternsCompile of package cmd compiles the patterns of all packages, and refuses one
// that is not made of literals and of constants of its file.
func New(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
