package web

import (
	"errors"
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
const listFilter = "status plan since until label q held retrying waiting parent all"

// listed reads the filter of a list, and the statuses that are asked for.
func (q *query) listed() (f store.ContextFilter, statuses []journal.RunStatus) {
	filter := history.RunFilter{
		Plan: q.text("plan"), Since: q.time("since"), Until: q.time("until"), Label: q.values["label"], Text: q.text("q"), Parent: q.text("parent"),
		Held: q.flag("held"), Retrying: q.flag("retrying"), Waiting: q.path("waiting"), All: q.flag("all"),
	}
	if text := q.text("status"); text != "" {
		filter.Status = strings.Split(text, ",")
	}
	f, statuses, err := filter.Contexts()
	if wrong, ok := errors.AsType[*history.FilterError](err); ok {
		q.err = filterProblem(wrong)
	}
	return f, statuses
}

// filterProblem returns the answer to a filter that can't be read.
func filterProblem(e *history.FilterError) error {
	if e.Known != nil {
		return wrong("%s%s", e, suggestion(e.Value, e.Known))
	}
	return wrong("%s", e)
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
