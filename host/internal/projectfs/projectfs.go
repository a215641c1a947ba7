// Package projectfs reads the files of a project, which may be written at the same time: it tells
// complete files from half-written ones.
package projectfs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
)

// SettleTime is the time without changes after which files are taken to be complete.
const SettleTime = 50 * time.Millisecond

// Set has the files of a project by their paths.
type Set map[string]File

// File is one file, or the reason why it can't be read.
type File struct {
	Bytes  []byte
	SHA256 string // in hex
	Time   time.Time
	Err    error
}

// TakeAll reads obelus.lua, all scripts below lib and activities, and further files. settled is
// false if one of them changed while it was read: it may be half written.
func TakeAll(fsys fs.FS, further ...string) (all Set, settled bool) {
	all, settled = Set{}, true
	take := func(name string) {
		s, quiet := Take(fsys, name)
		all[name], settled = s, settled && quiet
	}
	for _, name := range append([]string{limits.SettingsFile}, further...) {
		if _, err := fs.Stat(fsys, name); !errors.Is(err, fs.ErrNotExist) {
			take(name)
		}
	}
	for _, folder := range Folders {
		walkScripts(fsys, folder, func(name string, err error) {
			if err != nil {
				all[name] = File{Err: err}
				return
			}
			take(name)
		})
	}
	return all, settled
}

// Take reads one file. quiet reports that its size and its time were the same before and
// afterwards.
func Take(fsys fs.FS, name string) (s File, quiet bool) {
	before, err := fs.Stat(fsys, name)
	if err != nil {
		return File{Err: outside(fsys, name, err)}, true
	}
	if mode := before.Mode(); !mode.IsRegular() && !mode.IsDir() { // reading a pipe may never end
		return File{Err: errNoFile}, true
	}
	if s.Bytes, err = fs.ReadFile(fsys, name); err != nil {
		return File{Err: err}, true
	}
	sum := sha256.Sum256(s.Bytes)
	s.SHA256 = hex.EncodeToString(sum[:])
	after, err := fs.Stat(fsys, name)
	s.Time = before.ModTime()
	quiet = err == nil && before.ModTime().Equal(after.ModTime()) && before.Size() == after.Size() && after.Size() == int64(len(s.Bytes))
	return s, quiet
}

// ReadSettled reads a file that may be written at this moment: an editor empties a file first. It
// returns an empty file only if it stays empty.
func ReadSettled(fsys fs.FS, name string) ([]byte, error) {
	for tries := 0; ; tries++ {
		s, quiet := Take(fsys, name)
		if s.Err != nil || quiet && len(s.Bytes) > 0 || tries == 4 {
			return s.Bytes, s.Err
		}
		time.Sleep(SettleTime / 2)
	}
}

// Digest returns a hash of all files, in hex.
func (s Set) Digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if err := s[name].Err; err != nil {
			fmt.Fprintf(h, "%q %s\n", name, err)
			continue
		}
		fmt.Fprintf(h, "%q %s\n", name, s[name].SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Since returns the files that differ from those of an earlier set.
func (s Set) Since(before Set) (added, changed, removed []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		switch was, ok := before[name]; {
		case !ok:
			added = append(added, name)
		case was.SHA256 != s[name].SHA256:
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

// Without returns the set less some files.
func (s Set) Without(files []string) Set {
	rest := maps.Clone(s)
	for _, name := range files {
		delete(rest, name)
	}
	return rest
}

// Emptied reports whether a file has become empty since an earlier set: its new text is probably
// being written.
func (s File) Emptied(before Set, name string) bool {
	was, ok := before[name]
	return s.Err == nil && len(s.Bytes) == 0 && (!ok || len(was.Bytes) > 0)
}

// Unreadable returns the error of a script that can't be read.
func Unreadable(name string, err error) *luaerr.ScriptError {
	message := "it can't be read"
	var inner *fs.PathError
	var link *LinkError
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
