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
// What lies in /dev, /proc and /sys is the system's own: a permission for
// everything does not hold there, only one that lists it, or a folder in them
// that it lies in.
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
		if inUse(root, name) {
			return errInUse
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

// fs.write(path, text) → true | nil, err; in place of what was there
func fsWrite(e *Env, L *lua.LState) int {
	return e.writeFile(L, "fs.write", os.O_TRUNC)
}

func (e *Env) writeFile(L *lua.LState, what string, mode int) int {
	path, text := L.CheckString(1), L.CheckString(2)
	e.Effect(L, what)
	e.charge(L, len(text)/16+1)
	return e.onFile(L, writing, path, func(root *os.Root, name string) error {
		if info, err := root.Stat(name); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return errors.New("it is not a regular file")
		}
		if inUse(root, name) {
			return errInUse
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

// inUse tells of a file whether it is, or is part of, a database that somebody has open:
// SQLite keeps two files beside it. Whoever closes a file takes away all locks that the
// program has on it, so that if it is the program's own log, what is appended from then on
// could be lost.
func inUse(root *os.Root, name string) bool {
	main := strings.TrimSuffix(strings.TrimSuffix(name, "-wal"), "-shm")
	for _, part := range []string{main + "-wal", main + "-shm", main} {
		if info, err := root.Stat(part); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

var errInUse = errors.New("it is a database that is in use: copy it by obelus backup, or by sqlite3's .backup")

// access is what one of the two permissions that concern files is needed for.
type access struct {
	verb, flag string
	of         func(Grants) Grant
	link       bool // of a symbolic link it is the link that is meant, not where it leads
}

var (
	reading  = access{"reading", "read", func(g Grants) Grant { return g.Read }, false}
	writing  = access{"writing", "write", func(g Grants) Grant { return g.Write }, false}
	removing = access{"writing", "write", func(g Grants) Grant { return g.Write }, true}
)

// maxPath is how long a path may be, which messages repeat: as on Linux.
const maxPath = 4096

// onFile runs do on the file that path means, with the permission checked. do
// gets the granted folder as a root, which no symbolic link and no .. leads
// out of, and pushes one result; what it returns becomes nil and a message.
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
		return failed(L, fmt.Sprintf("%s %q: %s", a.verb, path, fileError(err, a)))
	}
	return 1
}

func (e *Env) open(a access, path string) (root *os.Root, name string, err error) {
	grant := a.of(e.Grants)
	abs, ok := e.Grants.resolve(path)
	if !ok {
		return nil, "", fmt.Errorf("%s %q is not possible: the project has no folder on disk", a.verb, path)
	}
	entry := filepath.VolumeName(abs) + string(filepath.Separator)
	if !grant.All {
		if entry, ok = e.Grants.covering(grant, abs); !ok {
			return nil, "", fmt.Errorf("%s %q is not allowed: run with --allow-%s=%s or set allow.%s in obelus.lua", a.verb, path, a.flag, path, a.flag)
		}
	}
	if in, at, ok := e.Grants.systemOwn(grant, abs); ok {
		return nil, "", fmt.Errorf("%s %q is not allowed: it lies in %s, the system's own: run with --allow-%s=%s or set allow.%s in obelus.lua", a.verb, path, in, a.flag, at, a.flag)
	}
	abs, entry = e.Grants.follow(grant, abs, entry, a.link)
	dir := entry
	if info, err := os.Stat(entry); err != nil || !info.IsDir() {
		dir = filepath.Dir(entry) // a single file is granted, or what will become one
	}
	root, err = os.OpenRoot(dir)
	if err != nil {
		return nil, "", fmt.Errorf("%s %q: %s", a.verb, path, fileError(err, a))
	}
	name, err = filepath.Rel(dir, abs)
	if err != nil {
		root.Close()
		return nil, "", fmt.Errorf("%s %q: it is not below the project", a.verb, path)
	}
	return root, name, nil
}

// fileError says in plain words what the system said.
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
	case strings.HasSuffix(text, "path escapes from parent"): // of several wrapped, mkdir's
		return "it leads out of what --allow-" + a.flag + " grants, through a symbolic link"
	}
	return text
}
