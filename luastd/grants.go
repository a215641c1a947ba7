package luastd

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Grants are the permissions of a project's scripts, in Deno's manner. The
// zero value grants nothing.
type Grants struct {
	// Root is the project's folder on disk, an absolute path. Relative paths of scripts and
	// grants are relative to it. Without a Root no relative
	// path can be read or written.
	Root string

	Net   Grant // "host" or "host:port"
	Read  Grant // files and folders, with all that is in them
	Write Grant
	Env   Grant // names of variables
	Model Grant // names of models

	// Secrets are the variables that no script sees, whatever Env grants.
	Secrets []string

	// Guarded are places, absolute paths, that Write covers only where one of its
	// entries names the place or a path below it: the project's scripts and the
	// folder of its log. A script that may write scripts may do all that any script may.
	Guarded []string

	// Bounds are the parts of grants that [Grants.Narrow] has returned; nil for others.
	Bounds *Bounds `json:"-"`
}

// Grant is one permission: for everything, or for the entries of a list.
type Grant struct {
	All  bool
	List []string
}

// Permission is one of those that [Grants] hold.
type Permission struct {
	Name  string // in settings, options and flags
	About string // for help
	Usage string // of the flag --allow-NAME
	Named bool   // true for all permissions does not cover it

	Of    func(g *Grants) *Grant
	Check func(entry string) error // refuses a wrong entry

	// covers reports whether what an entry grants is part of what another grants; nil for entries
	// that grant just what they name.
	covers func(g Grants, outer, inner string) bool
}

// Permissions are all permissions, sorted by name. A further one needs an entry here, and a field
// of [Grants].
var Permissions = []Permission{
	{
		Name: "env", About: `variables of the environment: "HOME" (--allow-env=NAME,…)`,
		Usage: "let scripts read variables of the environment, or only `NAME,...`",
		Of:    func(g *Grants) *Grant { return &g.Env }, Check: checkEnv,
	}, {
		Name: "model", About: `models that scripts may ask: "fast" (--allow-model=NAME,…)`,
		Usage: "let scripts ask models, or only `NAME,...`",
		Named: true, // they cost money
		Of:    func(g *Grants) *Grant { return &g.Model }, Check: checkModel,
	}, {
		Name: "net", About: `hosts, perhaps with a port: "api.example.com:443" (--allow-net=HOST,…)`,
		Usage: "let scripts use the network, or only `HOST[:PORT],...`",
		Of:    func(g *Grants) *Grant { return &g.Net }, Check: checkNet,
		covers: coversHost,
	}, {
		Name: "read", About: "files, and folders with all below (--allow-read=DIR,…)",
		Usage: "let scripts read files, or only those below `DIR,...`",
		Of:    func(g *Grants) *Grant { return &g.Read }, Check: checkFolder,
		covers: Grants.coversFolder,
	}, {
		Name: "write", About: "the same, to write them (--allow-write=DIR,…)",
		Usage: "let scripts write files, or only those below `DIR,...`",
		Of:    func(g *Grants) *Grant { return &g.Write }, Check: checkFolder,
		covers: Grants.coversPlace,
	},
}

func checkFolder(entry string) error {
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

// guarded finds the guarded place that a path lies in, by its name or by where it leads,
// unless the grant to write names that place or one below it that the path lies in. What
// counts of an entry is its name, not where a link of that name leads.
func (g Grants) guarded(path, real string) (place string, ok bool) {
	for _, place := range g.Guarded {
		if (within(place, path) || leadsInto(place, real)) && !g.names(place, path, real) {
			return place, true
		}
	}
	return "", false
}

func (g Grants) names(place, path, real string) bool {
	realPlace := realPath(place)
	for _, e := range g.Write.List {
		abs, known := g.resolve(e)
		if known && (within(place, abs) || within(realPlace, abs)) && (within(abs, path) || within(realPath(abs), real)) {
			return true
		}
	}
	return false
}

// leadsInto reports whether a path without links is a place or lies in it, whatever it is
// called there: where the file system ignores the case of letters, and by hard links.
func leadsInto(place, real string) bool {
	if within(realPath(place), real) {
		return true
	}
	there, err := os.Stat(place)
	for at := real; ; at = filepath.Dir(at) {
		if err == nil {
			if info, err := os.Stat(at); err == nil && os.SameFile(info, there) {
				return true
			}
		} else if strings.EqualFold(at, place) && ignoresCase(filepath.Dir(at)) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// ignoresCase reports whether names in a folder are the same in other letters: those of its
// entries, and without a usable entry its own.
func ignoresCase(folder string) bool {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if ignores, known := sameInOtherCase(filepath.Join(folder, entry.Name())); known {
			return ignores
		}
	}
	ignores, _ := sameInOtherCase(folder)
	return ignores
}

// sameInOtherCase reports whether a file is also found by its name in other letters. known is false
// where the name has no letters of two cases, or nothing can be found out.
func sameInOtherCase(path string) (same, known bool) {
	dir, name := filepath.Split(path)
	other := strings.ToUpper(name)
	if other == name {
		other = strings.ToLower(name)
	}
	info, err := os.Lstat(path)
	if err != nil || other == name {
		return false, false
	}
	found, err := os.Lstat(filepath.Join(dir, other))
	if errors.Is(err, os.ErrNotExist) {
		return false, true
	}
	return err == nil && os.SameFile(info, found), err == nil
}

// Within gives what both grants allow.
func (g Grants) Within(bound Grants) Grants {
	both := g
	for _, p := range Permissions {
		*p.Of(&both) = intersect(*p.Of(&g), *p.Of(&bound), func(outer, inner string) bool {
			return outer == inner || p.covers != nil && p.covers(g, outer, inner)
		})
	}
	if g.Write.All || bound.Write.All { // which names none
		both.Write.List = slices.DeleteFunc(slices.Clone(both.Write.List), func(entry string) bool {
			return g.namesGuarded(entry) && !(slices.Contains(g.Write.List, entry) && slices.Contains(bound.Write.List, entry))
		})
	}
	return both
}

func coversHost(_ Grants, a, b string) bool {
	outer, _ := parseEndpoint(a)
	inner, _ := parseEndpoint(b)
	return outer.covers(inner)
}

func (g Grants) coversFolder(a, b string) bool {
	outer, _ := g.resolve(a)
	inner, _ := g.resolve(b)
	return within(outer, inner)
}

// coversPlace is coversFolder of an entry to write. One that names a guarded place grants it, which
// one above it does not.
func (g Grants) coversPlace(a, b string) bool {
	return g.coversFolder(a, b) && (g.namesGuarded(a) || !g.namesGuarded(b))
}

func (g Grants) namesGuarded(entry string) bool {
	return slices.ContainsFunc(g.Guarded, func(place string) bool { return g.coversFolder(place, entry) })
}

// intersect gives the entries of each grant that the other covers.
func intersect(a, b Grant, covers func(outer, inner string) bool) Grant {
	if a.All {
		return b
	}
	if b.All {
		return a
	}
	both := Grant{}
	for _, from := range []struct{ entries, others []string }{{a.List, b.List}, {b.List, a.List}} {
		for _, entry := range from.entries {
			covered := slices.ContainsFunc(from.others, func(other string) bool { return covers(other, entry) })
			if covered && !slices.Contains(both.List, entry) {
				both.List = append(both.List, entry)
			}
		}
	}
	return both
}

// Widens reports whether the grants allow anything that others do not.
func (g Grants) Widens(others Grants) bool {
	both := g.Within(others)
	return slices.ContainsFunc(Permissions, func(p Permission) bool {
		own, left := p.Of(&g), p.Of(&both)
		return own.All != left.All || slices.ContainsFunc(own.List, func(e string) bool { return !left.Has(e) })
	})
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

// systemFolders hold things that are no files but look like files: secrets of processes, devices,
// and pipes that never end.
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

// maxLinks is how many symbolic links one after the other are followed, as on Linux.
const maxLinks = 40

// createdAt returns the place of the file that would be created for a path, also through links to
// places that do not exist yet.
func createdAt(path string) string {
	for range maxLinks {
		path = realPath(path)
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
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

// relative is a place as a script would name it.
func (g Grants) relative(place string) string {
	if rel, err := filepath.Rel(g.Root, place); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return place
}
