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

	"obelus/host/internal/limits"
	"obelus/host/internal/projectfs"
)

// longestBurst is how long changes may go on one after the other until the
// scripts are loaded in their midst, and how much longer if a file is being written then.
const longestBurst = time.Second

// Watch loads the scripts anew whenever their files change, once they have been
// left alone for 50 ms, until ctx is done. Every attempt, good or bad, is
// reported, from the goroutine that Watch runs on; an attempt whose files hold
// what the last one's did is none. files are further files below the project
// that count, such as the plan that a program runs; the generation holds them
// and does nothing with them. [Config.Dir] must be set. There may be one watch at
// a time; a second is refused. Watch gives nil once ctx is done, or why the folder
// can't be watched.
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
	if err := h.watch(files); err != nil {
		return err
	}
	defer h.unwatch()
	w := &watch{host: h, files: files, watcher: watcher}
	if err := w.follow(); err != nil {
		return err
	}
	w.touch() // what has changed before it was watched
	return w.run(ctx, report)
}

// watch is one Watch. It belongs to its goroutine.
type watch struct {
	host    *Host
	files   []string // that count too
	watcher *fsnotify.Watcher
	burst   time.Time // when the changes began that have not been looked at; zero if there are none
	due     <-chan time.Time
	linked  map[string]bool // by way of which files that are links are read: each link, and where the last leads
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
			if w.counts(event) {
				w.touch()
			}
		case <-w.watcher.Errors: // events were lost
			w.touch()
		case <-w.due:
			if err := w.look(report); err != nil {
				return err
			}
		}
	}
}

// touch waits for the end of a burst.
func (w *watch) touch() {
	now := time.Now()
	if w.burst.IsZero() {
		w.burst = now
	}
	if now.Sub(w.burst) >= longestBurst && w.due != nil {
		return // it is looked at soon, however much comes
	}
	w.due = time.After(min(projectfs.SettleTime, longestBurst-now.Sub(w.burst)))
}

// look loads the scripts if they hold something else than before.
func (w *watch) look(report func(Reload)) error {
	if err := w.follow(); err != nil { // before the files are read, so that nothing is missed
		return err
	}
	r, result := w.host.reloadChanged(time.Since(w.burst) >= 2*longestBurst)
	if result == unsettled {
		w.due = time.After(projectfs.SettleTime)
		return nil
	}
	w.burst, w.due = time.Time{}, nil
	if w.host.postponed() {
		w.touch()
	}
	if result == attempted {
		report(r)
	}
	return nil
}

// counts tells whether an event is about what is watched for: the folders hold
// other files too.
func (w *watch) counts(e fsnotify.Event) bool {
	if w.linked[e.Name] {
		return true
	}
	name, err := filepath.Rel(w.host.config.Dir, e.Name)
	if err != nil {
		return false
	}
	name = filepath.ToSlash(name)
	if name == limits.SettingsFile || slices.Contains(w.files, name) || slices.Contains(w.above(), name) {
		return true
	}
	folder, _, _ := strings.Cut(name, "/")
	if !slices.Contains(projectfs.Folders, folder) || strings.HasPrefix(path.Base(name), ".") {
		return false
	}
	return projectfs.IsScript(name) || e.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename|fsnotify.Chmod) // it may be a folder
}

// above are the folders that the further files lie in, each with those above it: who
// moves one, or brings it back, changes what lies there.
func (w *watch) above() (folders []string) {
	for _, file := range w.files {
		for folder := path.Dir(file); folder != path.Dir(folder); folder = path.Dir(folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// follow watches every folder that may hold what counts. One that is watched
// already stays so.
func (w *watch) follow() error {
	folders, files := []string{"."}, append([]string{limits.SettingsFile}, w.files...)
	folders = append(folders, w.above()...)
	for _, folder := range projectfs.Folders {
		projectfs.Walk(w.host.config.FS, folder, false, func(name string, isFolder bool, _ error) { // the attempt says why one can't be read
			if isFolder {
				folders = append(folders, name)
			} else if projectfs.IsScript(name) {
				files = append(files, name)
			}
		})
	}
	for _, folder := range folders {
		if err := w.add(filepath.FromSlash(folder), folder != "."); err != nil {
			return fmt.Errorf("%s can't be watched: %w", folder, err)
		}
	}
	w.linked = map[string]bool{}
	for _, file := range files {
		for _, place := range links(w.host.config.Dir, filepath.FromSlash(file)) {
			w.linked[place] = true
			err := w.watcher.Add(filepath.Dir(place)) // of one that leads nowhere the attempt says so
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
				return fmt.Errorf("%s, by way of which %s is read, can't be watched: %w", place, file, err)
			}
		}
	}
	return nil
}

// add watches a folder of the project, if it is there. Of one that may be closed the
// attempt says so, and a chmod is an event of the folder above.
func (w *watch) add(folder string, closed bool) error {
	err := w.watcher.Add(filepath.Join(w.host.config.Dir, folder))
	if errors.Is(err, fs.ErrNotExist) || closed && errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// mostLinks is how many links one after the other are followed, as in Unix.
const mostLinks = 40

// links are the places by way of which a file below a folder is read, if it is a
// link or is reached by one: each link, and where the last one leads.
func links(dir, file string) (places []string) {
	at, rest := dir, strings.Split(file, string(filepath.Separator))
	for len(rest) > 0 && len(places) <= mostLinks {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		to, err := os.Readlink(next)
		if err != nil { // it is no link
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
