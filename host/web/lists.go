package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// A list is given in pages of defaultPage contexts, or as many as are asked for, up to mostPage.
const (
	defaultPage = 100
	mostPage    = 1000
)

// listFilter is the query of a list of runs.
const listFilter = "status plan since until label q held parent all"

// listed reads the filter of a list, and the statuses that are asked for.
func (q *query) listed() (f store.ContextFilter, statuses []journal.RunStatus) {
	f = store.ContextFilter{
		Plan: q.text("plan"), Since: q.time("since"), Until: q.time("until"), Text: q.text("q"), Parent: q.text("parent"),
		Held: q.flag("held"), Roots: !q.flag("all") && q.text("parent") == "",
	}
	for _, label := range q.values["label"] {
		name, value, ok := strings.Cut(label, "=")
		if !ok {
			q.err = wrong("label=%s: it must be a name and a value, as in label=customer=7", label)
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[name] = value
	}
	if text := q.text("status"); text != "" {
		for _, word := range strings.Split(text, ",") {
			status := journal.RunStatus(word)
			if !slices.Contains(journal.RunStatuses(), status) {
				var known []string
				for _, k := range journal.RunStatuses() {
					known = append(known, string(k))
				}
				q.err = wrong("status=%s: there is no such status%s", word, suggestion(word, known))
			}
			statuses = append(statuses, status)
		}
	}
	return f, statuses
}

// flag reads a parameter that is true or false, and false where it is absent.
func (q *query) flag(name string) bool {
	switch text := q.text(name); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		q.err = wrong("%s=%s: it is true or false", name, text)
		return false
	}
}

// cursor reads the place at which a list goes on.
func (q *query) cursor() (mark store.ContextMark) {
	text := q.text("cursor")
	if text == "" {
		return mark
	}
	at, name, _ := strings.Cut(text, "~")
	updated, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || store.CheckStoredContext(name) != nil {
		q.err = wrong("cursor=%s: it must be the next of a list", text)
	}
	return store.ContextMark{Updated: updated, Context: name}
}

// cursorOf is the cursor with which a list goes on after a context.
func cursorOf(mark store.ContextMark) string {
	return mark.Updated.UTC().Format(time.RFC3339Nano) + "~" + mark.Context
}

// runPage is a page of a list of runs.
type runPage struct {
	Runs []history.Summary `json:"runs"`
	Next string            `json:"next,omitempty"` // the cursor of the next page; empty for the last
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	f, statuses := q.listed()
	limit := q.seq("limit")
	if f.After = q.cursor(); q.err != nil {
		return q.err
	}
	switch {
	case limit > mostPage:
		return wrong("limit=%d: a page has at most %d runs", limit, mostPage)
	case limit == 0:
		limit = defaultPage
	}
	return s.respond(w, r, func() (any, error) {
		page := runPage{Runs: []history.Summary{}}
		var last store.ContextMark
		for info, err := range history.List(r.Context(), s.log, f, statuses) {
			if err != nil {
				return nil, err
			}
			if int64(len(page.Runs)) == limit {
				page.Next = cursorOf(last)
				break
			}
			page.Runs, last = append(page.Runs, history.Summarize(info)), info.Mark()
		}
		return page, nil
	})
}

func (s *Server) countRuns(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	f, statuses := q.listed()
	if q.err != nil {
		return q.err
	}
	return s.respond(w, r, func() (any, error) {
		all, err := history.Count(r.Context(), s.log, f)
		counts, total := map[string]int64{}, int64(0)
		for status, n := range all {
			if len(statuses) == 0 || slices.Contains(statuses, status) {
				counts[string(status)] = n
				total += n
			}
		}
		return map[string]any{"total": total, "status": counts}, err
	})
}

// getInbox lists what waits for a person in all contexts.
func (s *Server) getInbox(w http.ResponseWriter, r *http.Request) error {
	return s.respondText(w, r, func() ([]byte, error) {
		in, err := history.ReadInbox(r.Context(), s.log)
		if err != nil {
			return nil, err
		}
		return approvals(in)
	})
}

// approvals is the answer with what waits for a person.
func approvals(in *history.Inbox) ([]byte, error) {
	var all []any
	for _, plan := range in.Plans {
		all = append(all, plan)
	}
	for _, call := range in.Calls {
		all = append(all, call.Approval())
	}
	return listOf(all, func(v any) (any, error) { return v, nil })
}
