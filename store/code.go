package store

import "errors"

// Code is a set of scripts as they were when calls ran them. It is kept with
// the log, once, so that what happened can be read beside what made it happen.
type Code struct {
	Digest  string   // of the whole set, in hex
	Scripts []Script // sorted by path
}

// Script is one version of a script.
type Script struct {
	Path   string // below the project, with slashes
	SHA256 string // of its source, in hex
	Source []byte // must not be changed
}

// ErrNoCode: no scripts of that digest have been kept.
var ErrNoCode = errors.New("no such scripts are kept")
