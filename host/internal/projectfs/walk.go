package projectfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Folders are the folders whose scripts a generation loads.
var Folders = []string{"lib", "activities"}

// walkScripts visits the scripts below a folder, and paths that can't be read.
func walkScripts(fsys fs.FS, folder string, visit func(name string, err error)) {
	Walk(fsys, folder, false, func(name string, isFolder bool, err error) {
		switch {
		case errors.Is(err, fs.ErrNotExist): // absent, or removed meanwhile
		case err != nil, !isFolder && IsScript(name):
			visit(name, err)
		}
	})
}

// Walk visits a folder and everything below it, including paths that can't be read. It leaves out
// hidden files and the copies that editors make, which are hidden or have another ending. It
// follows a link to a folder, but no further link within that, so that it ends.
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
			case escapes(err) && !strings.Contains(path.Base(name), "."): // probably a folder
				visit(name, false, outside(fsys, name, err))
			default: // if it leads nowhere, reading it fails
				visit(name, false, nil)
			}
		default:
			visit(name, entry.IsDir(), nil)
		}
		return nil
	})
}

// IsScript reports whether a file's name is that of a script.
func IsScript(name string) bool {
	return strings.HasSuffix(name, ".lua") && !strings.HasPrefix(path.Base(name), ".")
}

// errNoFile is the error of a path with the name of a script that is no regular file.
var errNoFile = errors.New("it is a pipe, a socket or a device, not a file")

// LinkError is the error of a path that leads outside the project by a link.
type LinkError struct{ link, target string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a link to what is outside the project, %s (copy that into the project)", e.link, e.target)
}

// escapes reports whether a path was refused by a folder that lets nothing outside be read
// (os.Root).
func escapes(err error) bool {
	var inner *fs.PathError
	return errors.As(err, &inner) && inner.Err.Error() == "path escapes from parent"
}

// outside returns a LinkError in place of err if a path can't be read because a link leads outside
// the project.
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
