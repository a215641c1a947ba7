// Command obelus runs plans of Lua activities over a log in SQLite, and shows what the log holds.
package main

import (
	"os"

	"obelus/cmd"
)

func main() { os.Exit(cmd.Main(cmd.Config{})) }
