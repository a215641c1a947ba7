// Package crash makes errors of panics that name the place in the program that panicked.
package crash

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
)

// PanicError is the error of what panicked, in the words for what that is. It says where,
// since nothing else of the stack is kept. It must be made while the panic unwinds.
func PanicError(what string, panicked any) error {
	if place := panicPlace(); place != "" {
		what += " at " + place
	}
	return fmt.Errorf("%s: %v", what, panicked)
}

// WithPlace adds the place to a panic of the Go runtime: a caller that reports it later does not
// see the stack any more. It must be called while the panic unwinds.
func WithPlace(panicked any) any {
	fault, ok := panicked.(runtime.Error)
	if !ok {
		return panicked
	}
	if place := placeWhere(func(string) bool { return true }); place != "" {
		return fmt.Errorf("%w (at %s)", fault, place)
	}
	return fault
}

// ownCode begins the names of the functions of the engine.
var ownCode = strings.TrimSuffix(reflect.TypeFor[marker]().PkgPath(), "/internal/crash")

type marker struct{}

// isOwn reports whether a function, as the runtime names it, is one of the engine's.
func isOwn(function string) bool {
	rest, ok := strings.CutPrefix(function, ownCode)
	return ok && (rest[0] == '.' || rest[0] == '/')
}

// panicPlace is the file and the line of the innermost function outside the runtime and the engine,
// without the folder, which would show the machine that the program was built on; "" where there is
// none.
func panicPlace() string {
	return placeWhere(func(function string) bool { return !isOwn(function) })
}

// placeWhere is the place of the innermost function that panicked, is not of the runtime, and
// counts; "" outside a panic.
func placeWhere(counts func(function string) bool) string {
	stack := make([]uintptr, 64)
	frames := runtime.CallersFrames(stack[:runtime.Callers(1, stack)])
	panicked := false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		panicked = panicked || f.Function == "runtime.gopanic"
		own := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "internal/runtime/")
		if panicked && f.Function != "" && !own && counts(f.Function) {
			return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
		}
	}
	return ""
}
