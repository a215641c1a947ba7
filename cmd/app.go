package cmd

import (
	"io"
	"sync/atomic"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/permissions"
	"obelus/cmd/internal/term"
	"obelus/host"
	"obelus/store"
)

// Config holds the things that a program adds to the command. The zero Config is the command obelus
// itself.
type Config struct {
	// Host brings the program's own Activities, Tools, Objects, Model, Clock and LoadTimeout. The
	// command sets all other fields itself, by the project and the flags.
	Host host.Config
}

// app is one run of the program: its flags, and the project and the log that a command opens.
type app struct {
	config Config
	stdin  io.Reader
	term   *term.Terminal
	help   io.Writer // receives help and completion; nil is the standard output

	projectFlag string
	dbFlag      string
	context     string
	json        bool
	quiet       bool
	verbose     bool
	raw         bool // a value that is a text is printed as it is
	level       cli.Level
	prompting   bool // the lines that are typed belong to a prompt
	allow       permissions.Flags
	models      modelFlags

	dir   string // the project's folder, absolute; without a project, see findProject
	found bool   // whether there is a project
	host  *host.Host
	log   store.Log
	shown *term.Log // shows the output of the project's scripts; nil without a project

	current atomic.Pointer[currentRun] // nil without a run
	// Lets Ctrl-Z stop the process at once again; nil where log is only read.
	unsuspend func()
}

// close closes the log.
func (a *app) close() {
	if a.unsuspend != nil {
		a.unsuspend()
	}
	if err := a.models.Save(); err != nil { // of a run that failed too: its answers are paid for
		a.term.Error(err)
	}
	if a.log != nil {
		if err := a.log.Close(); err != nil {
			a.term.Error(err)
		}
	}
}
