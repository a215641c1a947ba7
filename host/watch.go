package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/fsnotify/fsnotify"

	"obelus/host/internal/projectfs"
)

// longestBurst is the time for which changes may follow each other before the scripts are loaded
// anyway, and the additional time if a file is being written then.
const longestBurst = time.Second

// Watch loads the scripts anew whenever their files change, once they have been left alone for 50
// ms, until ctx is done. It reports every attempt, good or bad, from the goroutine that Watch runs
// on; files with the same contents as at the last attempt are no attempt. files are further files
// below the project that count, such as the plan that a program runs; a folder among them, such as
// tests, is all files in and below it that end with .lua or .json, whether it exists yet or not.
// The generation contains them without using them. [Config.Dir] must be set. A second watch at the
// same time is refused. Watch returns nil once ctx is done, or the reason why the folder can't be
// watched.
func (h *Host) Watch(ctx context.Context, report func(Reload), files ...string) error {
	if h.config.Dir == "" {
		return errors.New("the project has no folder on disk that could be watched")
	}
	if _, err := os.Stat(h.config.Dir); err != nil {
		return fmt.Errorf("the project's folder can't be watched: %w", err)
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("%s can't be watched: %w", h.config.Dir, err)
	}
	defer watcher.Close()
	if err := h.beginWatch(files); err != nil {
		return err
	}
	defer h.endWatch()
	w := &watch{host: h, files: files, watcher: watcher}
	if err := w.watchFolders(); err != nil {
		return err
	}
	w.awaitEnd() // for changes before the watch began
	return w.run(ctx, report)
}

// watch is one Watch. It belongs to its goroutine.
type watch struct {
	host    *Host
	files   []string // further files that count
	watcher *fsnotify.Watcher
	// Beginning of the changes that have not been looked at; zero if there are none.
	burst  time.Time
	due    <-chan time.Time
	linked map[string]bool // links through which files are read, and the targets of the last ones
}

func (w *watch) run(ctx context.Context, report func(Reload)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.watcher.Events:
			if !ok {
				return nil
			}
			if w.concerns(event) {
				w.awaitEnd()
			}
		case <-w.watcher.Errors: // events were lost
			w.awaitEnd()
		case <-w.due:
			if err := w.reloadChanged(report); err != nil {
				return err
			}
		}
	}
}

// awaitEnd waits for the end of a burst.
func (w *watch) awaitEnd() {
	now := time.Now()
	if w.burst.IsZero() {
		w.burst = now
	}
	if now.Sub(w.burst) >= longestBurst && w.due != nil {
		return // it is looked at soon in any case
	}
	w.due = time.After(min(projectfs.SettleTime, longestBurst-now.Sub(w.burst)))
}

// reloadChanged loads the scripts if their contents have changed.
func (w *watch) reloadChanged(report func(Reload)) error {
	// Before the files are read, so that no change is missed.
	if err := w.watchFolders(); err != nil {
		return err
	}
	r, result := w.host.reloadChanged(time.Since(w.burst) >= 2*longestBurst)
	if result == unsettled {
		w.due = time.After(projectfs.SettleTime)
		return nil
	}
	w.burst, w.due = time.Time{}, nil
	if w.host.postponed() {
		w.awaitEnd()
	}
	if result == attempted {
		report(r)
	}
	return nil
}

// concerns reports whether an event concerns the watched files: the folders hold other files too.
func (w *watch) concerns(e fsnotify.Event) bool {
	if w.linked[e.Name] {
		return true
	}
	name, err := filepath.Rel(w.host.config.Dir, e.Name)
	if err != nil {
		return false
	}
	name = filepath.ToSlash(name)
	if name == SettingsFile || slices.Contains(w.files, name) || slices.Contains(w.foldersAbove(), name) {
		return true
	}
	folder, _, _ := strings.Cut(name, "/")
	if !slices.Contains(projectfs.Folders, folder) && !isFurther(name, w.files) || strings.HasPrefix(path.Base(name), ".") {
		return false
	}
	// It may be a folder.
	return isFurtherFile(name) || e.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename|fsnotify.Chmod)
}

// furtherFiles returns the further files that count, with those below the folders among them.
func furtherFiles(fsys fs.FS, files []string) (all []string) {
	for _, file := range files {
		if info, err := fs.Stat(fsys, file); err != nil || !info.IsDir() {
			all = append(all, file)
			continue
		}
		projectfs.Walk(fsys, file, false, func(name string, isFolder bool, err error) {
			if err == nil && !isFolder && isFurtherFile(name) {
				all = append(all, name)
			}
		})
	}
	return all
}

// isFurtherFile reports whether a file in a further folder counts.
func isFurtherFile(name string) bool { return projectfs.IsScript(name) || path.Ext(name) == ".json" }

// isFurther reports whether a file is one of further files, or lies below a folder among them.
func isFurther(name string, files []string) bool {
	return slices.ContainsFunc(files, func(file string) bool { return name == file || strings.HasPrefix(name, file+"/") })
}

// foldersAbove returns the folders of the further files, and the folders above them: moving one of
// them changes a further file.
func (w *watch) foldersAbove() (folders []string) {
	for _, file := range w.files {
		for folder := path.Dir(file); folder != path.Dir(folder); folder = path.Dir(folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// watchFolders watches every folder that may hold a file that counts. A watched one stays watched.
func (w *watch) watchFolders() error {
	folders, files := []string{"."}, append([]string{SettingsFile}, w.files...)
	folders = append(folders, w.foldersAbove()...)
	for _, folder := range slices.Concat(projectfs.Folders, w.files) {
		// The attempt reports why it can't be read.
		projectfs.Walk(w.host.config.FS, folder, false, func(name string, isFolder bool, _ error) {
			if isFolder {
				folders = append(folders, name)
			} else if isFurtherFile(name) {
				files = append(files, name)
			}
		})
	}
	for _, folder := range folders {
		if err := w.watchFolder(filepath.FromSlash(folder), folder != "."); err != nil {
			return fmt.Errorf("%s can't be watched: %w", folder, err)
		}
	}
	w.linked = map[string]bool{}
	for _, file := range files {
		for _, place := range links(w.host.config.Dir, filepath.FromSlash(file)) {
			w.linked[place] = true
			// The attempt reports a link that leads nowhere.
			err := w.watcher.Add(filepath.Dir(place))
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
				return fmt.Errorf("%s, by way of which %s is read, can't be watched: %w", place, file, err)
			}
		}
	}
	return nil
}

// watchFolder watches a folder of the project, if it exists. The attempt reports a folder that may
// not be read, and a chmod is an event of the folder above.
func (w *watch) watchFolder(folder string, closed bool) error {
	err := w.watcher.Add(filepath.Join(w.host.config.Dir, folder))
	if errors.Is(err, fs.ErrNotExist) || closed && errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// maxLinks is the number of consecutive links that are followed, as in Unix.
const maxLinks = 40

// links returns the links through which a file below a folder is read, and the target of the last
// one. It returns nothing for a file that is reached without links.
func links(dir, file string) (places []string) {
	at, rest := dir, strings.Split(file, string(filepath.Separator))
	for len(rest) > 0 && len(places) <= maxLinks {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		to, err := os.Readlink(next)
		if err != nil { // not a link
			at = next
			continue
		}
		places = append(places, next)
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + string(filepath.Separator)
		}
		rest = append(strings.FieldsFunc(to, func(r rune) bool { return r < utf8.RuneSelf && os.IsPathSeparator(uint8(r)) }), rest...)
	}
	if len(places) > 0 {
		places = append(places, at)
	}
	return places
}
