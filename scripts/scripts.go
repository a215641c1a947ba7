// Package scripts holds the Lua that ships inside the binary: the templates of
// a new project.
package scripts

import (
	"embed"
	"io/fs"
)

//go:embed all:init
var files embed.FS

// Init is a new project, as obelus init writes it: it runs at once.
func Init() fs.FS {
	sub, err := fs.Sub(files, "init")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}
