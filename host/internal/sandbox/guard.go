package sandbox

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luaerr"
)

// Guard does what reads or makes a script's values outside of a call of the
// script. What raises there, a table that is too long to fill itself, say, is an
// error of the script and must not end the program.
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
