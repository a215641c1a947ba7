package sandbox

import (
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luaerr"
)

// Script is one file. Its compiled form is shared by all states.
type Script struct {
	File   string // below the project, with slashes
	Source []byte
	SHA256 string

	// compiled compiles the file when it is first called. Its error is a [*ScriptError].
	Compile func() (*lua.FunctionProto, error)
}

// NewBrokenScript is the script of a file that can't be read, or that is known not to compile.
func NewBrokenScript(file string, err error) *Script {
	return &Script{File: file, Compile: func() (*lua.FunctionProto, error) { return nil, luaerr.From(err) }}
}
