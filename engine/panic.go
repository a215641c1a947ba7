package engine

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
)

// broken is the error of what panicked, in the words for what that is. It says where,
// since nothing else of the stack is kept. It must be made while the panic unwinds.
func broken(what string, panicked any) error {
	if place := panicPlace(); place != "" {
		what += " at " + place
	}
	return fmt.Errorf("%s: %v", what, panicked)
}

// ownCode begins the names of the functions of this package.
var ownCode = reflect.TypeFor[Runner]().PkgPath() + "."

// panicPlace is the file and the line of the innermost function that is neither Go's
// runtime nor of this package, without the folder, which would tell of the machine that
// the program was made on; "" where there is none.
func panicPlace() string {
	stack := make([]uintptr, 64)
	frames := runtime.CallersFrames(stack[:runtime.Callers(1, stack)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		own := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "internal/runtime/") || strings.HasPrefix(f.Function, ownCode)
		if f.Function != "" && !own {
			return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
		}
	}
	return ""
}
