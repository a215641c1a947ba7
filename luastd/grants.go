package luastd

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// Grants are the permissions of a project's scripts, in Deno's manner. The
// zero value grants nothing.
type Grants struct {
	// Root is the project's folder on disk, an absolute path. What scripts and
	// grants call by relative paths lies below it. Without a Root no relative
	// path can be read or written.
	Root string

	Net   Grant // "host" or "host:port"
	Read  Grant // files and folders, with all that is in them
	Write Grant
	Env   Grant // names of variables
}

// Grant is one permission: for everything, or for what a list names.
type Grant struct {
	All  bool
	List []string
}

// CheckGrant reports what is wrong with an entry of a permission: env, net, read or
// write.
func CheckGrant(permission, entry string) error {
	switch permission {
	case "env":
		return checkEnv(entry)
	case "net":
		return checkNet(entry)
	}
	if entry == "" {
		return errors.New("an empty name is no folder's: . is the project's")
	}
	return nil
}

// None reports whether nothing is granted.
func (g Grant) None() bool { return !g.All && len(g.List) == 0 }

// Has reports whether the grant is for everything or lists the name.
func (g Grant) Has(name string) bool { return g.All || slices.Contains(g.List, name) }

// resolve is the place on disk that a script's path means; ok is false for a
// relative path without a root.
func (g Grants) resolve(path string) (abs string, ok bool) {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path), true
	}
	if g.Root == "" {
		return "", false
	}
	return filepath.Join(g.Root, path), true
}

// covering is the entry of the grant that path lies in, as a place on disk:
// the longest, if there are several.
func (g Grants) covering(grant Grant, path string) (entry string, ok bool) {
	for _, e := range grant.List {
		abs, known := g.resolve(e)
		if known && within(abs, path) && len(abs) > len(entry) {
			entry, ok = abs, true
		}
	}
	return entry, ok
}

// follow gives where a path that lies in an entry of the grant leads, without symbolic
// links, and the entry that it lies in then. Where it leads out of all that is granted
// it stays as it is, to be refused when it is opened.
func (g Grants) follow(grant Grant, path, entry string, link bool) (real, in string) {
	if real = realPath(path); link {
		real = filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
	}
	if grant.All {
		return real, entry
	}
	for _, e := range grant.List {
		abs, known := g.resolve(e)
		if !known {
			continue
		}
		if granted := realPath(abs); within(granted, real) && len(granted) > len(in) {
			in = granted
		}
	}
	if in == "" {
		return path, entry
	}
	return real, in
}

// systemFolders hold what is no file but looks like one: secrets of processes,
// devices, and what waits for ever.
var systemFolders = []string{"/dev", "/proc", "/sys"}

// systemOwn finds the system's folder that path lies in, and its place there,
// unless the grant lists a folder in it or the project itself lies there.
func (g Grants) systemOwn(grant Grant, path string) (folder, place string, ok bool) {
	listed, _ := g.covering(Grant{List: append([]string{g.Root}, grant.List...)}, path)
	listed = realPath(listed)
	for _, place := range []string{path, realPath(path)} {
		for _, folder := range systemFolders {
			if within(folder, place) && !within(folder, listed) {
				return folder, place, true
			}
		}
	}
	return "", "", false
}

// realPath is a path without symbolic links, as far as there is something.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	above := filepath.Dir(path)
	if above == path {
		return path
	}
	return filepath.Join(realPath(above), filepath.Base(path))
}

func within(dir, path string) bool {
	if path == dir {
		return true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.HasPrefix(path, dir)
}
