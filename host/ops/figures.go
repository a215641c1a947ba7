package ops

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// Bounds of the calls that figures count.
const (
	FiguresSpan = 24 * time.Hour
	MostFigures = 10_000 // calls; the newest ones count
	mostEntries = 4 * MostFigures
)

// Figures count the calls that have ended in the last day, by script. They keep those that they
// have read, and read newer entries of the journal alone. Their method may be called from several
// goroutines at once.
type Figures struct {
	Log store.Reader

	mu    sync.Mutex
	seen  int64       // position of the newest entry that was read
	calls []endedCall // the newest first
	cut   time.Time   // calls up to then are not counted, since there are too many
}

// endedCall is a call that a script ran.
type endedCall struct {
	script   string
	version  Version
	at       time.Time
	duration float64 // in milliseconds
	failed   bool
}

// ScriptFigures are the figures of a script.
type ScriptFigures struct {
	Calls, Failed int
	Median        float64   // of the durations, in milliseconds
	Versions      []Version // that ran, the newest first
}

// Version is a script as it was in a generation.
type Version struct{ SHA256, Generation string }

// ByScript returns the figures as of a time, by the paths of the scripts. complete is false if
// there were more calls than are counted.
func (f *Figures) ByScript(ctx context.Context, now time.Time) (all map[string]ScriptFigures, complete bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := now.Add(-FiguresSpan)
	if err := f.read(ctx, since); err != nil {
		return nil, false, err
	}
	if old := slices.IndexFunc(f.calls, func(c endedCall) bool { return c.at.Before(since) }); old >= 0 {
		f.calls = f.calls[:old]
	}
	if len(f.calls) > MostFigures {
		f.cut = f.calls[MostFigures].at
		f.calls = f.calls[:MostFigures]
	}
	durations := map[string][]float64{}
	all = map[string]ScriptFigures{}
	for _, c := range f.calls {
		of := all[c.script]
		if of.Calls++; c.failed {
			of.Failed++
		}
		if !slices.ContainsFunc(of.Versions, func(v Version) bool { return v.SHA256 == c.version.SHA256 }) {
			of.Versions = append(of.Versions, c.version)
		}
		all[c.script] = of
		durations[c.script] = append(durations[c.script], c.duration)
	}
	for script, of := range all {
		d := durations[script]
		slices.Sort(d)
		of.Median = d[len(d)/2]
		all[script] = of
	}
	return all, f.cut.Before(since), nil
}

// read reads the entries that are new, back to a time.
func (f *Figures) read(ctx context.Context, since time.Time) error {
	var fresh []endedCall
	newest, looked := f.seen, 0
	for entry, err := range f.Log.Journal(ctx, store.JournalFilter{Newest: true, After: f.seen}) {
		if err != nil {
			return err
		}
		newest = max(newest, entry.N)
		if looked++; looked > mostEntries || len(fresh) > MostFigures {
			f.cut = entry.Date
			break
		}
		if entry.Date.Before(since) {
			break
		}
		failed := entry.Event == string(journal.Failed)
		if entry.Call == "" || !failed && entry.Event != string(journal.Done) {
			continue
		}
		var r struct {
			Script     string
			SHA256     string `json:"script_sha256"`
			Generation string
			Duration   float64 `json:"duration_ms"`
		}
		if err := json.Unmarshal([]byte(entry.Data), &r); err != nil || r.Script == "" { // what can't be read is reported elsewhere
			continue
		}
		fresh = append(fresh, endedCall{r.Script, Version{r.SHA256, r.Generation}, entry.Date, r.Duration, failed})
	}
	f.seen, f.calls = newest, append(fresh, f.calls...)
	return nil
}
