package host

import (
	"sync"
)

// libraryNames are the global tables that every script has.
var libraryNames = []string{
	"Activity", "Delegate", "Message", "Output", "Tool", "_G", "_VERSION", "coroutine", "debug", "io", "json", "math", "os", "package",
	"string", "table",
}

// globalNames are those of libraries and of functions, in sorted order. The functions refer to
// it themselves.
var globalNames []string

// knownGlobals are the names that a function may give another value.
var knownGlobals = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for _, name := range libraryNames {
		known[name] = true
	}
	for _, f := range baseFuncs {
		known[f.name] = true
	}
	return known
})
