package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"obelus/engine/expr"
	"obelus/engine/plan"
	"obelus/host/internal/projectfs"
	"obelus/luastd"
)

// Host holds a project's scripts. Its methods may be called from several goroutines at once.
type Host struct {
	config  Config
	started Settings // of the first generation
	present atomic.Pointer[Generation]

	last atomic.Pointer[lastReload]

	loading sync.Mutex // held during an attempt; guards the fields below
	watched bool
	files   []string      // further files that count, during a watch
	good    projectfs.Set // files of the present generation, with the further ones
	tried   string        // digest of the files at the last attempt
	empty   map[string]emptied
	late    bool // the last attempt ignored that such a file was empty
}

// emptied has the time at which a file was first found empty, and its modification time then.
type emptied struct{ since, time time.Time }

// Reload is the outcome of one attempt to load the scripts anew.
type Reload struct {
	// Generation is the one that is loaded now: a new one, or, after an error, the old one.
	Generation *Generation

	// Added, Changed and Removed are files, sorted, relative to the generation that was loaded
	// before.
	Added, Changed, Removed []string

	Took time.Duration // of the attempt
	Time time.Time     // at which it began

	// Pending are settings that have changed and take effect only once the host is started again.
	Pending []string

	// Withheld reports that obelus.lua grants more than before, which a watch does not take over by
	// itself: [Host.Reload] does, or starting the host again. Pending has "allow" then, or
	// "serve.tokens" where tokens may do more, or there are more of them.
	Withheld bool

	// Err is an [Errors], with everything that is wrong, or nil.
	Err error
}

// Open loads a project: its settings, and every activities/**/*.lua, each of which runs once to see
// its registrations. Its error is an [Errors], with everything that is wrong.
func Open(config Config) (*Host, error) {
	if config.FS != nil {
		if _, err := fs.Stat(config.FS, "."); err != nil {
			return nil, fmt.Errorf("the project's folder can't be read: %w", err)
		}
	}
	h := &Host{config: config.withDefaults()}
	h.config.latest = func() *plan.Registry { return h.Generation().registry }
	from, settled := projectfs.TakeAll(h.config.FS)
	for tries := 0; !settled && tries < 4; tries++ {
		time.Sleep(projectfs.SettleTime)
		from, settled = projectfs.TakeAll(h.config.FS)
	}
	g, err := load(h.config, from, nil, nil)
	if err != nil {
		return nil, err
	}
	if g.settings.Expressions > 0 {
		expr.EvaluateAtOnce(g.settings.Expressions)
	}
	g.Number = 1
	h.started, h.good, h.tried = g.settings, from, from.Digest()
	h.present.Store(g)
	h.setLast(Reload{Generation: g, Added: slices.Sorted(maps.Keys(from)), Time: g.Loaded})
	return h, nil
}

// Generation returns the set of scripts that is loaded now.
func (h *Host) Generation() *Generation { return h.present.Load() }

// Plan is [Generation.Plan] of the present generation.
func (h *Host) Plan(file string) (*plan.Request, *plan.Registry, error) {
	return h.Generation().Plan(file)
}

// LastReload returns the newest attempt to load the scripts, which may be the first. It has an
// error while the scripts are broken.
func (h *Host) LastReload() Reload { return h.last.Load().Reload }

// NextReload returns a channel that is closed at the next attempt to load the scripts.
func (h *Host) NextReload() <-chan struct{} { return h.last.Load().replaced }

// lastReload is the newest attempt to load the scripts.
type lastReload struct {
	Reload
	replaced chan struct{} // closed when there is a newer one
}

func (h *Host) setLast(r Reload) {
	if before := h.last.Swap(&lastReload{r, make(chan struct{})}); before != nil {
		close(before.replaced)
	}
}

// Reload loads the scripts anew, whether they have changed or not, and takes over the permissions
// of obelus.lua, while a watch only reduces them. If all scripts load, the new generation replaces
// the old one, whole and at once, and running calls end with the old one; otherwise the old one
// stays. It waits, up to a second, for a file that is being written.
func (h *Host) Reload() Reload {
	h.loading.Lock()
	defer h.loading.Unlock()
	for began := time.Now(); ; time.Sleep(projectfs.SettleTime) {
		if from, settled := h.readFiles(time.Since(began) >= longestBurst); settled {
			return h.reload(from, nil)
		}
	}
}

// readFiles reads the files. They have settled if none was read half written and none has just
// become empty, since its text follows in a moment. If overdue is set, it takes them anyway, except
// that a newly empty file keeps its earlier text.
func (h *Host) readFiles(overdue bool) (from projectfs.Set, settled bool) {
	from, settled = projectfs.TakeAll(h.config.FS, furtherFiles(h.config.FS, h.files)...)
	settled = settled || overdue
	before := h.empty
	h.empty, h.late = map[string]emptied{}, false
	for name, s := range from {
		if !s.Emptied(h.good, name) {
			continue
		}
		known, ok := before[name]
		if !ok || !known.time.Equal(s.Time) {
			known = emptied{time.Now(), s.Time}
		}
		h.empty[name] = known
		switch was, ok := h.good[name]; {
		case time.Since(known.since) >= projectfs.SettleTime:
		case !overdue:
			settled = false
		case ok:
			from[name], h.late = was, true
		default:
			delete(from, name)
			h.late = true
		}
	}
	return from, settled
}

// beginWatch begins the only watch: changes that a second one found would be missing from the
// reports of the first.
func (h *Host) beginWatch(files []string) error {
	h.loading.Lock()
	defer h.loading.Unlock()
	if h.watched {
		return errors.New("the project is watched already: use the reports of that watch, or end it first")
	}
	h.watched = true
	h.setFurtherFiles(files)
	return nil
}

// endWatch ends the watch: its files no longer count.
func (h *Host) endWatch() {
	h.loading.Lock()
	defer h.loading.Unlock()
	h.watched = false
	h.setFurtherFiles(nil)
}

// setFurtherFiles replaces the further files that count, as they are now.
func (h *Host) setFurtherFiles(files []string) {
	tried := h.tried == h.good.Digest()
	h.good = h.withoutFurther(h.good)
	h.files = files
	for _, name := range furtherFiles(h.config.FS, files) {
		if s, _ := projectfs.Take(h.config.FS, name); !errors.Is(s.Err, fs.ErrNotExist) {
			h.good[name] = s
		}
	}
	if tried {
		h.tried = h.good.Digest()
	}
}

// withoutFurther returns a set of files without those that the generation does not use.
func (h *Host) withoutFurther(files projectfs.Set) projectfs.Set {
	rest := maps.Clone(files)
	maps.DeleteFunc(rest, func(name string, _ projectfs.File) bool { return isFurther(name, h.files) })
	return rest
}

// attempt is the result of reloadChanged.
type attempt int

const (
	unchanged attempt = iota // the files are the same as at the last attempt
	unsettled                // files are being written
	attempted
)

// postponed reports whether the last attempt ignored that a file had become empty.
func (h *Host) postponed() bool {
	h.loading.Lock()
	defer h.loading.Unlock()
	return h.late
}

// reloadChanged is Reload for files that have changed and settled.
func (h *Host) reloadChanged(overdue bool) (Reload, attempt) {
	h.loading.Lock()
	defer h.loading.Unlock()
	from, settled := h.readFiles(overdue)
	switch {
	case !settled:
		return Reload{}, unsettled
	case from.Digest() == h.tried:
		return Reload{}, unchanged
	}
	grants := h.Generation().Grants()
	return h.reload(from, &grants), attempted
}

// reload is Reload of files that have been read, with permissions within a bound, if there is one.
func (h *Host) reload(from projectfs.Set, bound *luastd.Grants) Reload {
	start, before := time.Now(), h.Generation()
	r := Reload{Generation: before, Time: start}
	r.Added, r.Changed, r.Removed = from.Since(h.good)
	g, err := load(h.config, h.withoutFurther(from), before, bound)
	if r.Err = err; err == nil {
		g.Number = before.Number + 1
		r.Generation, r.Pending = g, h.started.pending(g.settings)
		if r.Withheld = g.withheld; r.Withheld {
			r.Pending = append([]string{"allow"}, r.Pending...)
		}
		if bound != nil && g.settings.Serve.narrowTokens(before.settings.Serve.Tokens) {
			r.Withheld, r.Pending = true, append(r.Pending, "serve.tokens")
		}
		h.present.Store(g)
		h.good = from
		before.retire()
	}
	h.tried = from.Digest()
	r.Took = time.Since(start)
	h.setLast(r)
	return r
}

// Close ends the idle worker processes of the host.
func (h *Host) Close() { h.Generation().retire() }
