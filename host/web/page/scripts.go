package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/ops"
	"obelus/host/schedule/ledger"
	"obelus/store"

	"github.com/aymanbagabas/go-udiff"
)

// scriptsView is the project's scripts, as they are loaded.
type scriptsView struct {
	Generation int
	Loaded     string
	Digest     string
	Files      []scriptRow
	Problems   []plan.Problem // why newer files do not load
	Error      string
	Since      string
	Changed    []string // files that differ from the loaded ones
	Pending    []string // grants that wait for a restart
	Schedules  []scheduleRow
	CountsAll  bool // the figures have all calls of the last day; else those of the newest Most
	Most       int
}

// scriptRow is a loaded file, with the calls that it ran in the last day.
type scriptRow struct {
	Path, SHA256 string
	ops.ScriptFigures
}

// scheduleRow is a schedule with its next time, its last run, and the skipped ones.
type scheduleRow struct {
	Name, Plan, Cron, Zone, Next string
	Last, Status                 string
	Skips                        []string
}

func (p *Page) scripts(r *http.Request) (*content, error) {
	last := p.config.Host.LastReload()
	g := last.Generation
	v := scriptsView{Generation: g.Number, Loaded: store.FormatDate(g.Loaded), Digest: g.Digest, Pending: last.Pending}
	figures, all, err := p.figures.ByScript(r.Context(), time.Now())
	if err != nil {
		return nil, err
	}
	v.CountsAll, v.Most = all, ops.MostFigures
	for _, f := range g.Files() {
		v.Files = append(v.Files, scriptRow{f.Path, f.SHA256, figures[f.Path]})
	}
	if last.Err != nil {
		v.Error, v.Since = last.Err.Error(), store.FormatDate(last.Time)
		v.Problems, _ = host.Problems(last.Err)
		v.Changed = append(append(append(v.Changed, last.Added...), last.Changed...), last.Removed...)
	}
	if v.Schedules, err = p.read.schedules(r); err != nil {
		return nil, err
	}
	return &content{Title: "Scripts", Section: "scripts", Template: "scripts", Data: v}, nil
}

func (l reader) schedules(r *http.Request) (rows []scheduleRow, err error) {
	now := time.Now()
	for _, s := range l.Host.Generation().Settings().Serve.Schedules {
		row := scheduleRow{Name: s.Name, Plan: s.Plan, Cron: s.Cron, Zone: s.Zone, Next: store.FormatDate(s.When.Next(now))}
		state, err := ledger.Read(r.Context(), l.Log, s.Name, now)
		if err != nil {
			return nil, err
		}
		if run := state.Run; run != nil {
			row.Last, row.Status = run.Context, string(run.Status)
		}
		for _, skip := range state.Skips {
			row.Skips = append(row.Skips, fmt.Sprintf("%d since %s: %s", skip.Count, store.FormatDate(skip.From), skip.Reason))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// script is a script as it was when calls ran it.
type script struct{ Generation, Path, SHA256, Source string }

// sourceView is a script, whole or as it differs from an earlier one.
type sourceView struct {
	script
	Lines   []string
	Present bool         // it is of the loaded generation
	Before  *script      // the earlier one; nil where the script is shown whole
	Changes []sourceLine // since then
}

// sourceLine is a line of a difference.
type sourceLine struct {
	Sign string // + or -; … before a part that is left out; empty for a line that is the same
	Text string
}

func (p *Page) source(r *http.Request) (*content, error) {
	read := func(generation string) (s script, err error) {
		path := "/v1/code/" + url.PathEscape(generation) + fileLink("", r.PathValue("path"))
		return s, p.do(r, act{http.MethodGet, path, nil}, &s)
	}
	shown, err := read(r.PathValue("generation"))
	if err != nil {
		return nil, err
	}
	v := sourceView{script: shown, Present: p.config.Host.Generation().RunsCode(shown.Generation, shown.Path)}
	if from := r.URL.Query().Get("from"); from != "" {
		before, err := read(from)
		if err != nil {
			return nil, err
		}
		v.Before, v.Changes = &before, sourceChanges(before.Source, shown.Source)
	} else {
		v.Lines = strings.Split(strings.TrimSuffix(shown.Source, "\n"), "\n")
	}
	return &content{Title: shown.Path, Section: "scripts", Template: "source", Data: v, Still: true}, nil
}

// linesAround is the number of lines that are shown around a difference.
const linesAround = 3

// sourceChanges returns the lines that differ between two versions of a script, with some around
// them.
func sourceChanges(before, after string) (lines []sourceLine) {
	edits := udiff.Lines(before, after)
	diff, err := udiff.ToUnifiedDiff("", "", before, edits, linesAround)
	if err != nil { // which edits of the text itself do not give
		return nil
	}
	for _, hunk := range diff.Hunks {
		lines = append(lines, sourceLine{"…", fmt.Sprintf("line %d", hunk.ToLine)})
		for _, line := range hunk.Lines {
			sign := map[udiff.OpKind]string{udiff.Insert: "+", udiff.Delete: "-"}[line.Kind]
			lines = append(lines, sourceLine{sign, strings.TrimSuffix(line.Content, "\n")})
		}
	}
	return lines
}

// keys is the page that lists the keys.
func (p *Page) keys(*http.Request) (*content, error) {
	return &content{Title: "Keys", Template: "keys", Data: keyHelp, Still: true}, nil
}

// keyHelp lists the keys.
var keyHelp = []struct{ Key, Does string }{
	{"?", "this list"},
	{"/", "search"},
	{"j k", "the next row, the one before"},
	{"Enter", "open the row"},
	{"Esc", "back, or close what is at the side"},
	{"g r", "runs"},
	{"g i", "inbox"},
	{"g p", "plans"},
	{"g s", "scripts"},
	{"f", "only what failed"},
	{"[ ]", "one message back or forward in time"},
	{"{ }", "ten messages"},
	{"l", "back to now"},
	{"w", "where the value comes from that has the focus"},
	{"d", "compare with now, or with where it was forked"},
	{"a x", "approve or reject the call that has the focus, which asks"},
}
