package web

import (
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
	f = store.ContextFilter{
		Plan: q.text("plan"), Since: q.time("since"), Until: q.time("until"), Text: q.text("q"), Parent: q.text("parent"),
		Held: q.flag("held"), Retrying: q.flag("retrying"), WaitingOn: q.path("waiting").String(), Roots: !q.flag("all") && q.text("parent") == "",
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
		held, word := false, ""
		switch statuses, held, word = history.ReadStatuses(strings.Split(text, ",")); {
		case word != "":
			known := []string{history.StatusHeld}
			for _, k := range journal.RunStatuses() {
				known = append(known, string(k))
			}
			q.err = wrong("status=%s: there is no such status%s", word, suggestion(word, known))
		case held && len(statuses) > 0:
			q.err = wrong("status=held picks runs that wait for a person, and goes with no other status")
		}
		f.Held = f.Held || held
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
