package projectfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Folders hold what a generation loads.
var Folders = []string{"lib", "activities"}

// walkScripts visits the scripts below a folder, and what can't be read.
func walkScripts(fsys fs.FS, folder string, visit func(name string, err error)) {
	Walk(fsys, folder, false, func(name string, isFolder bool, err error) {
		switch {
		case errors.Is(err, fs.ErrNotExist): // there is none, or no longer
		case err != nil, !isFolder && IsScript(name):
			visit(name, err)
		}
	})
}

// Walk visits a folder and what is below it, with what can't be read. Hidden files
// are none, nor are the copies that editors make: they are hidden or end with
// something else. A link to a folder is one; within that no further is, so that
// there is an end.
func Walk(fsys fs.FS, folder string, linked bool, visit func(name string, isFolder bool, err error)) {
	_ = fs.WalkDir(fsys, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			visit(name, false, outside(fsys, name, err))
		case strings.HasPrefix(path.Base(name), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.Type()&fs.ModeSymlink != 0 && !linked:
			switch info, err := fs.Stat(fsys, name); {
			case err == nil && info.IsDir():
				Walk(fsys, name, true, visit)
			case escapes(err) && !strings.Contains(path.Base(name), "."): // a folder for all that is known
				visit(name, false, outside(fsys, name, err))
			default: // if it leads nowhere, who needs it says so
				visit(name, false, nil)
			}
		default:
			visit(name, entry.IsDir(), nil)
		}
		return nil
	})
}

// IsScript tells whether a file's name is that of a script.
func IsScript(name string) bool {
	return strings.HasSuffix(name, ".lua") && !strings.HasPrefix(path.Base(name), ".")
}

// errNoFile is why what has the name of a script isn't read.
var errNoFile = errors.New("it is a pipe, a socket or a device, not a file")

// LinkError is why what a link to outside the project leads to isn't read.
type LinkError struct{ link, target string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a link to what is outside the project, %s (copy that into the project)", e.link, e.target)
}

// escapes reports whether a folder that lets nothing outside be read (os.Root) refused a path.
func escapes(err error) bool {
	var inner *fs.PathError
	return errors.As(err, &inner) && inner.Err.Error() == "path escapes from parent"
}

// outside finds the link by which a path leads outside the project, if that is why it can't
// be read.
func outside(fsys fs.FS, name string, err error) error {
	if !escapes(err) {
		return err
	}
	for end := range len(name) + 1 {
		if end < len(name) && name[end] != '/' {
			continue
		}
		link := name[:end]
		if _, err := fs.Stat(fsys, link); !escapes(err) {
			continue
		}
		if target, err := fs.ReadLink(fsys, link); err == nil {
			return &LinkError{link, target}
		}
	}
	return err
}
