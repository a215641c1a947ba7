package page

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/host/ops"
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
	Text, Plan, Since, Until, Label, Status string

	WaitingOn string // a path
	Parent    string // whose delegates' contexts are listed
	Only      string // onlyHeld, onlyRetrying, or empty
	All       bool   // delegates too
}

// Conditions of runs that are counted beside their statuses. They are also the names of the
// parameters of the address.
const (
	onlyRetrying = "retrying"
	onlyHeld     = "held"
)

// runRow is one run.
type runRow struct {
	history.Summary
	ID   string
	Note string // the reason why it failed
}

// Periods lists the times for the form since when runs may be asked for, the shortest first; one
// that the address has beside them is the last.
func (f runsFilter) Periods() []string {
	all := []string{"1h", "24h", "7d", "30d"}
	if f.Since != "" && !slices.Contains(all, f.Since) {
		all = append(all, f.Since)
	}
	return all
}

// IsSet reports whether the filter leaves anything out.
func (f runsFilter) IsSet() bool {
	f.All = false
	return f != runsFilter{}
}

func readFilter(q url.Values) runsFilter {
	f := runsFilter{
		Text: strings.TrimSpace(q.Get("q")), Plan: q.Get("plan"), Since: q.Get("since"), Until: strings.TrimSpace(q.Get("until")), Label: strings.TrimSpace(q.Get("label")),
		Status: q.Get("status"), WaitingOn: strings.TrimSpace(q.Get("waiting")), Parent: q.Get("parent"), All: q.Get("all") != "",
	}
	for _, only := range []string{onlyRetrying, onlyHeld} {
		if q.Get(only) != "" {
			f.Only = only
		}
	}
	if f.Status == history.StatusHeld {
		f.Status, f.Only = "", onlyHeld
	}
	return f
}

// query returns the address's query for the filter, with another status and condition.
func (f runsFilter) query(status, only string) string {
	return queryOf([]any{
		"q", f.Text, "plan", f.Plan, "since", f.Since, "until", f.Until, "label", f.Label, "waiting", f.WaitingOn, "parent", f.Parent, "status", status, onlyHeld, only == onlyHeld,
		onlyRetrying, only == onlyRetrying, "all", f.All,
	})
}

// read returns the filter of contexts, the statuses that are asked for, and what can't be read of
// it, which is left out.
func (f runsFilter) read() (c store.ContextFilter, statuses []journal.RunStatus, wrong string) {
	list := history.RunFilter{All: f.All}
	list.Plan, list.Text, list.Parent = f.Plan, f.Text, f.Parent
	list.Held, list.Retrying = f.Only == onlyHeld, f.Only == onlyRetrying
	if f.Status != "" {
		list.Status = []string{f.Status}
	}
	list.Since, wrong = readMoment(f.Since)
	until, isNone := readMoment(f.Until)
	list.Until, wrong = until, cmp.Or(wrong, isNone)
	if f.WaitingOn != "" {
		path, err := store.ParseTyped(f.WaitingOn)
		if list.Waiting = path; err != nil {
			wrong = "What runs wait for is a path, as †input.receipt, and it is not looked for: " + err.Error()
		}
	}
	if _, err := history.ReadLabels(labelsOf(f.Label)); err != nil {
		wrong = "A label is a name and a value, as customer=7: this one is not looked for."
	} else {
		list.Label = labelsOf(f.Label)
	}
	c, statuses, err := list.Contexts()
	if err != nil {
		return store.ContextFilter{Roots: !f.All}, nil, err.Error()
	}
	return c, statuses, wrong
}

// readMoment reads a time of a filter, or says that it can't be read.
func readMoment(text string) (t time.Time, wrong string) {
	t, ok := history.ReadMoment(text)
	if !ok && text != "" {
		wrong = "A time is a date, as 2026-01-31, or a span before now, as 7d: " + text + " is not looked for."
	}
	return t, wrong
}

// labelsOf returns the labels that the form asks for, which it writes with spaces too.
func labelsOf(text string) []string {
	if text == "" {
		return nil
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return []string{text}
	}
	return []string{strings.TrimSpace(name) + "=" + strings.TrimSpace(value)}
}

func (p *Page) runs(r *http.Request) (*content, error) {
	q := r.URL.Query()
	v := runsView{Filter: readFilter(q), Plans: p.config.Host.Generation().PlanFiles(), IsFirst: q.Get("cursor") == ""}
	f, statuses, wrong := v.Filter.read()
	v.Wrong = wrong
	f.After, _ = ops.ReadCursor(q.Get("cursor")) // the beginning, where it can't be read
	var last store.ContextMark
	for info, err := range history.List(r.Context(), p.config.Log, f, statuses) {
		if err != nil {
			return nil, err
		}
		if len(v.Runs) == pageRows {
			v.Older = v.Filter.query(v.Filter.Status, v.Filter.Only)
			v.Older += cond(v.Older == "", "?", "&") + "cursor=" + url.QueryEscape(ops.Cursor(last))
			break
		}
		line, err := p.config.Waiting.Summarize(r.Context(), info)
		if err != nil {
			return nil, err
		}
		v.Runs, last = append(v.Runs, rowOf(line)), info.Mark()
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
	counts, only := map[journal.RunStatus]int64{}, map[string]int64{}
	if v.IsFirst && v.Older == "" && v.Filter.Status == "" && v.Filter.Only == "" {
		for _, run := range v.Runs {
			counts[run.Status]++
			if run.Retrying > 0 {
				only[onlyRetrying]++
			}
		}
		held := v.Filter // delegates' calls too, which the rows do not count
		held.Only = onlyHeld
		waiting, _, _ := held.read()
		found, err := history.Count(ctx, log, waiting)
		only[onlyHeld] = sum(found)
		return v.Filter.counts(counts, only), err
	}
	f := v.Filter
	f.Only, f.Status = "", "" // all are counted, also those that are not listed
	counted, _, _ := f.read()
	counts, err := history.Count(ctx, log, counted)
	if err != nil {
		return nil, err
	}
	for _, f.Only = range []string{onlyRetrying, onlyHeld} {
		counted, _, _ := f.read()
		found, err := history.Count(ctx, log, counted)
		if err != nil {
			return nil, err
		}
		only[f.Only] = sum(found)
	}
	return v.Filter.counts(counts, only), nil
}

func sum(counts map[journal.RunStatus]int64) (all int64) {
	for _, n := range counts {
		all += n
	}
	return all
}

// counts returns the line of counts. A status that no run has is left out, unless it is asked for.
func (f runsFilter) counts(by map[journal.RunStatus]int64, only map[string]int64) []statusCount {
	all := []statusCount{{Word: "all", Count: sum(by), Query: f.query("", ""), Picked: f.Status == "" && f.Only == ""}}
	for _, status := range journal.RunStatuses() {
		word := string(status)
		if by[status] > 0 || f.Status == word {
			all = append(all, statusCount{Word: word, Count: by[status], Query: f.query(word, ""), Picked: f.Status == word})
		}
	}
	for _, word := range []string{onlyRetrying, onlyHeld} {
		if only[word] > 0 || f.Only == word {
			all = append(all, statusCount{Word: word, Count: only[word], Query: f.query("", word), Picked: f.Only == word})
		}
	}
	return all
}

func rowOf(line history.Summary) runRow {
	return runRow{Summary: line, ID: "run-" + line.Context, Note: line.Error}
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
