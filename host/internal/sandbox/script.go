package sandbox

import (
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luaerr"
)

// Script is one file. All states share its compiled form.
type Script struct {
	File   string // below the project, with slashes
	Source []byte
	SHA256 string

	// Compile compiles the file on its first call. Its error is a [*luaerr.ScriptError].
	Compile func() (*lua.FunctionProto, error)
}

// NewBrokenScript returns the script of a file that can't be read or compiled.
func NewBrokenScript(file string, err error) *Script {
	return &Script{File: file, Compile: func() (*lua.FunctionProto, error) { return nil, luaerr.From(err) }}
}
