// Command obelus runs plans of Lua activities over a log in SQLite. See package cmd.
package main

import (
	"os"

	"obelus/cmd"
)

func main() { os.Exit(cmd.Main(cmd.Config{})) }
