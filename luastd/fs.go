package luastd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	lua "github.com/yuin/gopher-lua"
)

// fs: the files that the permissions read and write grant. In Lua:
//
//	local fs = require("fs")
//	assert(fs.write("out/greeting.txt", "hello"))
//	local text = assert(fs.read("out/greeting.txt"))
//
// Files in /dev, /proc and /sys are the system's own: a permission for
// everything does not hold there, only one that lists it, or a folder in them
// that it lies in.
//
// obelus.lua, activities, lib, plans and tests, and the folder of the log, can be
// written only with a permission that names them or a path in them: "." and a
// permission for everything do not. Scripts in them run with all
// permissions. Files that SQLite keeps beside a database are left to it.
var fsFuncs = []Func{
	{"append", fsAppend},
	{"exists", fsExists},
	{"list", fsList},
	{"mkdir", fsMkdir},
	{"read", fsRead},
	{"remove", fsRemove},
	{"stat", fsStat},
	{"write", fsWrite},
}

// fs.append(path, text) → true | nil, err; makes the file if there is none
func fsAppend(e *Env, L *lua.LState) int {
	return e.writeFile(L, "fs.append", os.O_APPEND)
}

// fs.exists(path) → boolean | nil, err
func fsExists(e *Env, L *lua.LState) int {
	return e.onFile(L, reading, L.CheckString(1), func(root *os.Root, name string) error {
		_, err := root.Stat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		L.Push(lua.LBool(err == nil))
		return nil
	})
}

// fs.list(folder) → sorted array of the names in it | nil, err
func fsList(e *Env, L *lua.LState) int {
	return e.onFile(L, reading, L.CheckString(1), func(root *os.Root, name string) error {
		info, err := root.Stat(name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return syscall.ENOTDIR
		}
		dir, err := root.Open(name)
		if err != nil {
			return err
		}
		defer dir.Close()
		names, err := dir.Readdirnames(-1)
		if err != nil {
			return err
		}
		slices.Sort(names)
		L.Push(e.stringArray(L, names))
		return nil
	})
}

// fs.mkdir(path) → true | nil, err; with the folders above it
func fsMkdir(e *Env, L *lua.LState) int {
	path := L.CheckString(1)
	e.Effect(L, "fs.mkdir")
	return e.onFile(L, writing, path, func(root *os.Root, name string) error {
		L.Push(lua.LTrue)
		return root.MkdirAll(name, 0o777)
	})
}

// fs.read(path) → text | nil, err
func fsRead(e *Env, L *lua.LState) int {
	return e.onFile(L, reading, L.CheckString(1), func(root *os.Root, name string) error {
		info, err := root.Stat(name)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return syscall.EISDIR
		case !info.Mode().IsRegular(): // opening a pipe would wait for ever
			return errors.New("it is not a regular file")
		case inUse(root, name):
			return errInUse
		}
		file, err := root.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, int64(e.maxString())+1))
		if err != nil {
			return err
		}
		if len(text) > e.maxString() {
			return fmt.Errorf("it is longer than %d bytes", e.maxString())
		}
		e.charge(L, len(text)/16+1)
		L.Push(lua.LString(text))
		return nil
	})
}

// fs.remove(path) → true | nil, err; a file or an empty folder
func fsRemove(e *Env, L *lua.LState) int {
	path := L.CheckString(1)
	e.Effect(L, "fs.remove")
	return e.onFile(L, removing, path, func(root *os.Root, name string) error {
		if name == "." {
			return errors.New("it is what --allow-write grants: only what lies in it can be removed")
		}
		if err := checkDatabase(root, name); err != nil {
			return err
		}
		L.Push(lua.LTrue)
		return root.Remove(name)
	})
}

// fs.stat(path) → {type = "file" | "folder" | "other", size, modified} | nil, err;
// size in bytes, modified in seconds since 1970
func fsStat(e *Env, L *lua.LState) int {
	return e.onFile(L, reading, L.CheckString(1), func(root *os.Root, name string) error {
		info, err := root.Stat(name)
		if err != nil {
			return err
		}
		kind := "other"
		if info.IsDir() {
			kind = "folder"
		} else if info.Mode().IsRegular() {
			kind = "file"
		}
		t := L.CreateTable(0, 3)
		t.RawSetString("modified", lua.LNumber(seconds(info.ModTime())))
		t.RawSetString("size", lua.LNumber(info.Size()))
		t.RawSetString("type", lua.LString(kind))
		L.Push(t)
		return nil
	})
}

// fs.write(path, text) → true | nil, err; replaces a file
func fsWrite(e *Env, L *lua.LState) int {
	return e.writeFile(L, "fs.write", os.O_TRUNC)
}

func (e *Env) writeFile(L *lua.LState, what string, mode int) int {
	path, text := L.CheckString(1), L.CheckString(2)
	e.Effect(L, what)
	e.charge(L, len(text)/16+1)
	return e.onFile(L, writing, path, func(root *os.Root, name string) error {
		info, err := root.Stat(name)
		if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return errors.New("it is not a regular file")
		}
		if err == nil && hardLinks(info) > 1 {
			return errors.New("it has other names (hard links), which may lie where nothing is granted")
		}
		if err := checkDatabase(root, name); err != nil {
			return err
		}
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|mode, 0o666)
		if err != nil {
			return err
		}
		_, err = file.WriteString(text)
		if closing := file.Close(); err == nil {
			err = closing
		}
		L.Push(lua.LTrue)
		return err
	})
}

// inUse reports whether a file is a database that is open in some process: SQLite keeps other files
// beside it then. To close any descriptor of a file releases all locks that the process has on it,
// so if it is the program's own log, later appends could be lost.
func inUse(root *os.Root, name string) bool {
	return regular(root, name) && (regular(root, name+"-journal") ||
		regular(root, name+"-wal") && regular(root, name+"-shm") || sideFileOf(root, name) != "")
}

// sideFiles are the endings of the files that SQLite keeps beside a database.
var sideFiles = []string{"-journal", "-wal", "-shm"}

// sideFileOf returns the database whose side file a file is, or would be, or "": SQLite would read
// such a file into the database.
func sideFileOf(root *os.Root, name string) string {
	for _, ending := range sideFiles {
		at := len(name) - len(ending)
		if at <= 0 || !strings.EqualFold(name[at:], ending) {
			continue
		}
		main := name[:at]
		// All of a database's pages have a power of two from 512. It must not be opened,
		// since closing it would take away locks.
		if info, err := root.Stat(main); err == nil && info.Mode().IsRegular() && info.Size()%512 == 0 {
			return main
		}
	}
	return ""
}

func regular(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

var errInUse = errors.New("it is a database that is in use: copy it by obelus backup, or by sqlite3's .backup")

// checkDatabase refuses to change a database that is in use, or a file that SQLite would read with
// one.
func checkDatabase(root *os.Root, name string) error {
	if inUse(root, name) {
		return errInUse
	}
	if main := sideFileOf(root, name); main != "" {
		return fmt.Errorf("SQLite would take it for a part of the database %s", filepath.Base(main))
	}
	return nil
}

// access is what one of the two permissions that concern files is needed for.
type access struct {
	verb, flag string
	of         func(Grants) Grant
	link       bool // a symbolic link is itself meant, not its target
}

var (
	reading  = access{"reading", "read", func(g Grants) Grant { return g.Read }, false}
	writing  = access{"writing", "write", func(g Grants) Grant { return g.Write }, false}
	removing = access{"writing", "write", func(g Grants) Grant { return g.Write }, true}
)

// maxPath is how long a path may be, which messages repeat: as on Linux.
const maxPath = 4096

// onFile calls do for the file that path means, with the permission checked. do gets the granted
// folder as a root, out of which no symbolic link and no .. leads, and pushes one result. An error
// of do reaches the script as nil and a message.
func (e *Env) onFile(L *lua.LState, a access, path string, do func(root *os.Root, name string) error) int {
	e.outside(L)
	path = cmp.Or(path, ".")
	if len(path) > maxPath {
		return failed(L, fmt.Sprintf("%s: the path is longer than %d bytes", a.verb, maxPath))
	}
	root, name, err := e.open(a, path)
	if err != nil {
		return failed(L, err.Error())
	}
	defer root.Close()
	if err := do(root, name); err != nil {
		if e.Grants.Bounds != nil && leavesRoot(err) {
			return failed(L, e.Grants.refusal(fmt.Sprintf("%s %q", a.verb, path), func(g Grants) *missing { return g.leadingOut(a, path) }))
		}
		return failed(L, fmt.Sprintf("%s %q: %s", a.verb, path, fileError(err, a)))
	}
	return 1
}

func (e *Env) open(a access, path string) (root *os.Root, name string, err error) {
	abs, ok := e.Grants.resolve(path)
	if !ok {
		return nil, "", fmt.Errorf("%s %q is not possible: the project has no folder on disk", a.verb, path)
	}
	real, entry, lacking := e.Grants.locate(a, path, abs)
	if lacking != nil {
		return nil, "", errors.New(e.Grants.refusal(fmt.Sprintf("%s %q", a.verb, path), func(g Grants) *missing {
			_, _, lacking := g.locate(a, path, abs)
			return lacking
		}))
	}
	dir := entry
	if info, err := os.Stat(entry); err != nil || !info.IsDir() {
		dir = filepath.Dir(entry) // a single file is granted, or what will become one
	}
	root, err = os.OpenRoot(dir)
	if err != nil {
		return nil, "", fmt.Errorf("%s %q: %s", a.verb, path, fileError(err, a))
	}
	name, err = filepath.Rel(dir, real)
	if err != nil {
		root.Close()
		return nil, "", fmt.Errorf("%s %q: it is not below the project", a.verb, path)
	}
	return root, name, nil
}

// locate returns where the file abs, which a script calls path, lies without symbolic links, and
// the entry of the grant that it lies in; or the permission that it lacks.
func (g Grants) locate(a access, path, abs string) (real, entry string, lacking *missing) {
	grant := a.of(g)
	entry = filepath.VolumeName(abs) + string(filepath.Separator)
	if !grant.All {
		var ok bool
		if entry, ok = g.covering(grant, abs); !ok {
			return "", "", &missing{kind: a.flag, entries: []string{path}}
		}
	}
	if in, at, ok := g.systemOwn(grant, abs); ok {
		return "", "", &missing{a.flag, []string{at}, fmt.Sprintf("it lies in %s, the system's own", in)}
	}
	real, entry = g.follow(grant, abs, entry, a.link)
	if a.flag == writing.flag {
		if place, ok := g.guarded(abs, createdAt(real)); ok {
			place = g.relative(place)
			return "", "", &missing{a.flag, []string{place}, place + " holds the project's scripts or its log, which only a permission that names it, or a path in it, covers"}
		}
	}
	return real, entry, nil
}

// leadingOut returns the permission that is missing for the place to which a path leads through a
// symbolic link; nil if that is granted.
func (g Grants) leadingOut(a access, path string) *missing {
	abs, _ := g.resolve(path)
	real, in := g.follow(a.of(g), abs, "", a.link)
	if a.of(g).All || in != "" {
		return nil
	}
	return &missing{a.flag, []string{g.relative(realPath(real))}, "it leads out of what is granted, through a symbolic link"}
}

// leavesRoot reports whether a path leads out of the root in which it was opened.
func leavesRoot(err error) bool {
	text := err.Error()
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		text = inner.Err.Error()
	}
	return strings.HasSuffix(text, "path escapes from parent") // of several wrapped, mkdir's
}

// fileError returns the system's error in plain words.
func fileError(err error, a access) string {
	var inner *fs.PathError
	text := err.Error()
	if errors.As(err, &inner) {
		text = inner.Err.Error()
	}
	switch {
	case errors.Is(err, syscall.ENOTEMPTY): // to Go it is an ErrExist
		return "the folder is not empty"
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrExist):
		return "it exists already"
	case errors.Is(err, fs.ErrPermission):
		return "the system does not allow it"
	case errors.Is(err, syscall.EISDIR):
		return "it is a folder"
	case errors.Is(err, syscall.ENOTDIR):
		return "it is not a folder, or something above it is not"
	case leavesRoot(err):
		return "it leads out of what --allow-" + a.flag + " grants, through a symbolic link"
	}
	return text
}
