// Package scripts holds the Lua that ships inside the binary: the templates of
// a new project, and annotations for editors.
package scripts

import (
	"embed"
	"io/fs"
)

//go:embed all:init types
var files embed.FS

// Init is a new project, as obelus init writes it: it runs at once.
func Init() fs.FS { return below("init") }

// Types are annotations of all globals and modules that a script has beside
// Lua's own, in LuaCATS, as editors read them: a file for each module, named
// after it, globals.lua, and testing.lua for the globals of tests.
func Types() fs.FS { return below("types") }

func below(folder string) fs.FS {
	sub, err := fs.Sub(files, folder)
	if err != nil {
		panic(err) // the folders are embedded above
	}
	return sub
}
