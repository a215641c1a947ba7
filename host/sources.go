package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
)

// settleTime is how long files must have been left alone before they are read.
const settleTime = 50 * time.Millisecond

// sources is what the scripts of a project hold, by their files.
type sources map[string]source

// source is one file, or why it can't be read.
type source struct {
	bytes  []byte
	sha256 string // in hex
	time   time.Time
	err    error
}

// takeSources reads obelus.lua and all scripts below lib and activities, and
// further files that are asked for. settled is false if one of them changed
// while it was read: then it may be half of what somebody is writing.
func takeSources(fsys fs.FS, further ...string) (all sources, settled bool) {
	all, settled = sources{}, true
	take := func(name string) {
		s, quiet := takeSource(fsys, name)
		all[name], settled = s, settled && quiet
	}
	for _, name := range append([]string{limits.SettingsFile}, further...) {
		if _, err := fs.Stat(fsys, name); !errors.Is(err, fs.ErrNotExist) {
			take(name)
		}
	}
	for _, folder := range scriptFolders {
		walkScripts(fsys, folder, func(name string, err error) {
			if err != nil {
				all[name] = source{err: err}
				return
			}
			take(name)
		})
	}
	return all, settled
}

// scriptFolders hold what a generation loads.
var scriptFolders = []string{"lib", "activities"}

// walkScripts visits the scripts below a folder, and what can't be read.
func walkScripts(fsys fs.FS, folder string, visit func(name string, err error)) {
	walkFiles(fsys, folder, false, func(name string, isFolder bool, err error) {
		switch {
		case errors.Is(err, fs.ErrNotExist): // there is none, or no longer
		case err != nil, !isFolder && isScript(name):
			visit(name, err)
		}
	})
}

// walkFiles visits a folder and what is below it, with what can't be read. Hidden files
// are none, nor are the copies that editors make: they are hidden or end with
// something else. A link to a folder is one; within that no further is, so that
// there is an end.
func walkFiles(fsys fs.FS, folder string, linked bool, visit func(name string, isFolder bool, err error)) {
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
				walkFiles(fsys, name, true, visit)
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

// isScript tells whether a file's name is that of a script.
func isScript(name string) bool {
	return strings.HasSuffix(name, ".lua") && !strings.HasPrefix(path.Base(name), ".")
}

// errNoFile is why what has the name of a script isn't read.
var errNoFile = errors.New("it is a pipe, a socket or a device, not a file")

// outsideError is why what a link to outside the project leads to isn't read.
type outsideError struct{ link, target string }

func (e *outsideError) Error() string {
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
			return &outsideError{link, target}
		}
	}
	return err
}

// takeSource reads one file. quiet tells that its size and its time were the
// same before and afterwards.
func takeSource(fsys fs.FS, name string) (s source, quiet bool) {
	before, err := fs.Stat(fsys, name)
	if err != nil {
		return source{err: outside(fsys, name, err)}, true
	}
	if mode := before.Mode(); !mode.IsRegular() && !mode.IsDir() { // reading a pipe may never end
		return source{err: errNoFile}, true
	}
	if s.bytes, err = fs.ReadFile(fsys, name); err != nil {
		return source{err: err}, true
	}
	sum := sha256.Sum256(s.bytes)
	s.sha256 = hex.EncodeToString(sum[:])
	after, err := fs.Stat(fsys, name)
	s.time = before.ModTime()
	quiet = err == nil && before.ModTime().Equal(after.ModTime()) && before.Size() == after.Size() && after.Size() == int64(len(s.bytes))
	return s, quiet
}

// readSettled reads a file that somebody may be writing at this moment: an
// editor empties it first. One that stays empty is empty.
func readSettled(fsys fs.FS, name string) ([]byte, error) {
	for tries := 0; ; tries++ {
		s, quiet := takeSource(fsys, name)
		if s.err != nil || quiet && len(s.bytes) > 0 || tries == 4 {
			return s.bytes, s.err
		}
		time.Sleep(settleTime / 2)
	}
}

// digest is what tells one set of sources from another, in hex.
func (s sources) digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if err := s[name].err; err != nil {
			fmt.Fprintf(h, "%q %s\n", name, err)
			continue
		}
		fmt.Fprintf(h, "%q %s\n", name, s[name].sha256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// since tells what is different from sources that were taken before.
func (s sources) since(before sources) (added, changed, removed []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		switch was, ok := before[name]; {
		case !ok:
			added = append(added, name)
		case was.sha256 != s[name].sha256:
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := s[name]; !ok {
			removed = append(removed, name)
		}
	}
	return added, changed, removed
}

// without leaves files out.
func (s sources) without(files []string) sources {
	rest := maps.Clone(s)
	for _, name := range files {
		delete(rest, name)
	}
	return rest
}

// emptied tells whether a file has become empty: its text is probably on its
// way.
func (s source) emptied(before sources, name string) bool {
	was, ok := before[name]
	return s.err == nil && len(s.bytes) == 0 && (!ok || len(was.bytes) > 0)
}

// unreadable returns the error of a script that can't be read, in words for people.
func unreadable(name string, err error) *luaerr.ScriptError {
	message := "it can't be read"
	var inner *fs.PathError
	var link *outsideError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		message = "there is no such file"
	case errors.As(err, &inner):
		message += ": " + inner.Err.Error()
	case errors.As(err, &link), errors.Is(err, errNoFile):
		message += ": " + err.Error()
	}
	return luaerr.WithCause(&luaerr.ScriptError{File: name, Message: message}, err)
}
