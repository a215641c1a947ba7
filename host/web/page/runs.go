package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// pageRows is the number of rows of a list.
const pageRows = 100

// runsView is the list of runs.
type runsView struct {
	Filter  runsFilter
	Counts  []statusCount
	Runs    []runRow
	Plans   []string // for the filter
	Older   string   // the query of the next page; empty on the last
	IsFirst bool     // it is the first page
	IsEmpty bool     // the log has no run at all
	Wrong   string   // about a filter that is not applied
}

// runsFilter is the filter of the list, as the address has it.
type runsFilter struct {
	Text, Plan, Since, Label, Status string
	Held, All                        bool
}

// runRow is one run.
type runRow struct {
	history.Summary
	ID   string
	Note string // the reason why it failed
}

// periods are the times since when runs may be asked for.
var periods = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}

// Periods lists them for the form, the shortest first.
func (runsFilter) Periods() []string { return []string{"1h", "24h", "7d", "30d"} }

// IsSet reports whether the filter leaves anything out.
func (f runsFilter) IsSet() bool {
	return f.Text != "" || f.Plan != "" || f.Since != "" || f.Label != "" || f.Status != "" || f.Held
}

func readFilter(q url.Values) runsFilter {
	return runsFilter{
		Text: strings.TrimSpace(q.Get("q")), Plan: q.Get("plan"), Since: q.Get("since"), Label: strings.TrimSpace(q.Get("label")),
		Status: q.Get("status"), Held: q.Get("held") != "", All: q.Get("all") != "",
	}
}

// query returns the address's query for the filter, with another status.
func (f runsFilter) query(status string, held bool) string {
	return queryOf([]any{"q", f.Text, "plan", f.Plan, "since", f.Since, "label", f.Label, "status", status, "held", held, "all", f.All})
}

func (f runsFilter) ofLog() store.ContextFilter {
	c := store.ContextFilter{Text: f.Text, Plan: f.Plan, Roots: !f.All, Held: f.Held}
	if d, ok := periods[f.Since]; ok {
		c.Since = time.Now().Add(-d)
	}
	if name, value, ok := strings.Cut(f.Label, "="); ok {
		c.Labels = map[string]string{strings.TrimSpace(name): strings.TrimSpace(value)}
	}
	return c
}

func (p *Page) runs(r *http.Request) (*content, error) {
	q := r.URL.Query()
	v := runsView{Filter: readFilter(q), Plans: p.config.Host.Generation().PlanFiles(), IsFirst: q.Get("cursor") == ""}
	f := v.Filter.ofLog()
	if v.Filter.Label != "" && f.Labels == nil {
		v.Wrong = "A label is a name and a value, as customer=7: this one is not looked for."
	}
	var statuses []journal.RunStatus
	if v.Filter.Status != "" {
		statuses = []journal.RunStatus{journal.RunStatus(v.Filter.Status)}
	}
	f.After = markOf(q.Get("cursor"))
	var last store.ContextMark
	for info, err := range history.List(r.Context(), p.config.Log, f, statuses) {
		if err != nil {
			return nil, err
		}
		if len(v.Runs) == pageRows {
			v.Older = v.Filter.query(v.Filter.Status, v.Filter.Held)
			v.Older += cond(v.Older == "", "?", "&") + "cursor=" + url.QueryEscape(cursorOf(last))
			break
		}
		v.Runs, last = append(v.Runs, rowOf(info)), info.Mark()
	}
	var err error
	if v.Counts, err = countRuns(r.Context(), p.config.Log, &v); err != nil {
		return nil, err
	}
	v.IsEmpty = len(v.Runs) == 0 && !v.Filter.IsSet()
	return &content{Title: "Runs", Section: "runs", Template: "runs", Data: v, Still: !v.IsFirst}, nil
}

// countRuns returns the line of counts of a view whose rows have been read. A list that fits the
// view is counted there: another look at the log may cost as much as the list.
func countRuns(ctx context.Context, log store.Reader, v *runsView) ([]statusCount, error) {
	counts, held := map[journal.RunStatus]int64{}, int64(0)
	if v.IsFirst && v.Older == "" && v.Filter.Status == "" && !v.Filter.Held {
		for _, run := range v.Runs {
			counts[run.Status]++
			if run.Held > 0 {
				held++
			}
		}
		return v.Filter.counts(counts, held), nil
	}
	f := v.Filter.ofLog()
	f.Held = false
	counts, err := history.Count(ctx, log, f)
	if err != nil {
		return nil, err
	}
	f.Held = true
	heldCounts, err := history.Count(ctx, log, f)
	return v.Filter.counts(counts, sum(heldCounts)), err
}

func sum(counts map[journal.RunStatus]int64) (all int64) {
	for _, n := range counts {
		all += n
	}
	return all
}

// counts returns the line of counts. A status that no run has is left out, unless it is asked for.
func (f runsFilter) counts(by map[journal.RunStatus]int64, held int64) []statusCount {
	all := []statusCount{{Word: "all", Count: sum(by), Query: f.query("", false), Picked: f.Status == "" && !f.Held}}
	for _, status := range journal.RunStatuses() {
		word := string(status)
		if by[status] > 0 || f.Status == word {
			all = append(all, statusCount{Word: word, Count: by[status], Query: f.query(word, false), Picked: f.Status == word})
		}
	}
	if held > 0 || f.Held {
		all = append(all, statusCount{Word: "held", Count: held, Query: f.query("", true), Picked: f.Held})
	}
	return all
}

func rowOf(info store.ContextInfo) runRow {
	row := runRow{Summary: history.Summarize(info), ID: "run-" + info.Context, Note: info.Standing.Error}
	return row
}

// Word is the status as a list shows it: a run that waits for a person alone is held.
func (r runRow) Word() string {
	if r.Held > 0 {
		return string(journal.Held)
	}
	return string(r.Status)
}

// Percent says how many of the calls have settled well, for a bar.
func (r runRow) Percent() int {
	if r.Calls == 0 {
		return 0
	}
	return 100 * r.Done / r.Calls
}

// LabelText is the labels as they are typed: "customer=7 region=north".
func (r runRow) LabelText() string {
	var all []string
	for name, value := range r.Labels {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// cursorOf is the text of a place in a list; markOf reads it, and takes an unreadable one
// for the beginning.
func cursorOf(mark store.ContextMark) string {
	return mark.Updated.UTC().Format(time.RFC3339Nano) + "~" + mark.Context
}

func markOf(text string) store.ContextMark {
	at, name, _ := strings.Cut(text, "~")
	updated, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || store.CheckStoredContext(name) != nil {
		return store.ContextMark{}
	}
	return store.ContextMark{Updated: updated, Context: name}
}
