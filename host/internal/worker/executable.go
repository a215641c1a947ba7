package worker

import (
	"fmt"
	"os"
)

// OwnProgram is this program, once it has called [Main].
var OwnProgram *executable

// executable is the file of a running program, as it was when the program began.
type executable struct {
	Path string
	was  os.FileInfo
	err  error
}

func ownExecutable() *executable {
	e := &executable{}
	if e.Path, e.err = os.Executable(); e.err == nil {
		e.was, e.err = os.Stat(e.Path)
	}
	return e
}

// Now returns the present path of the file. If another file has taken its place, as after an
// upgrade, the system may still have the one that runs.
func (e *executable) Now() (string, error) {
	if e.err != nil {
		return "", e.err
	}
	if info, err := os.Stat(e.Path); err == nil && os.SameFile(info, e.was) {
		return e.Path, nil
	}
	const running = "/proc/self/exe"
	if info, err := os.Stat(running); err == nil && os.SameFile(info, e.was) {
		return running, nil
	}
	return "", fmt.Errorf("%s has gone, or is another program than the one that runs: start that anew", e.Path)
}
