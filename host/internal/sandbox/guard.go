package sandbox

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luaerr"
)

// Guard calls do, which reads or makes values of a script outside of a call. An error that is
// raised there, by a table that is too long to fill itself for example, is an error of the script
// and must not end the program.
func Guard(file string, do func() error) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		message := "the script broke down"
		var api *lua.ApiError
		if e, ok := r.(error); ok && errors.As(e, &api) && api.Object != nil {
			message = api.Object.String()
		}
		err = &luaerr.ScriptError{File: file, Message: message}
	}()
	return do()
}
