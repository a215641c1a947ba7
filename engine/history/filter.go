package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/engine/duration"
	"obelus/engine/journal"
	"obelus/store"
)

// ContextFilter is what a list of contexts is asked for: by flags of the command, or by parameters
// of a request over HTTP or of the page. Its empty fields pick all.
type ContextFilter struct {
	Status   []string   `query:"status" kind:"words" jsonschema:"Those with one of these statuses, a list with commas; held for those that wait for a person."`
	Plan     string     `query:"plan" jsonschema:"Runs of this plan's file."`
	Since    time.Time  `query:"since" kind:"date" jsonschema:"Appended to from this time on: a date, or a span before now, as 90s or 7d."`
	Until    time.Time  `query:"until" kind:"date" jsonschema:"Appended to before this time."`
	Label    []string   `query:"label" jsonschema:"A label as NAME=VALUE; may be given several times."`
	Text     string     `query:"q" jsonschema:"Text in the name, the plan or a label, in any case."`
	Held     bool       `query:"held" jsonschema:"true picks runs that wait for a person's decision."`
	Retrying bool       `query:"retrying" jsonschema:"Only runs with calls that pause before another attempt."`
	Waiting  store.Path `query:"waiting" kind:"path" jsonschema:"Only runs that wait for this path, among the first 32 that they wait for."`
	Parent   string     `query:"parent" jsonschema:"The contexts of the delegates of this context."`
}

// RunFilter is what a list of runs is asked for: a [ContextFilter] that leaves out delegates.
type RunFilter struct {
	ContextFilter
	All bool `query:"all" jsonschema:"true adds the contexts of delegates."`
}

// Contexts returns the filter of contexts, and the statuses that are asked for; none for all. Its
// error is a *[FilterError].
func (f *RunFilter) Contexts() (c store.ContextFilter, statuses []journal.RunStatus, err error) {
	c, statuses, err = f.ContextFilter.Contexts()
	c.Roots = !f.All && f.Parent == ""
	return c, statuses, err
}

// FilterError tells which value of a filter can't be read, by the name that it has over HTTP.
type FilterError struct {
	Name, Value, Reason string
	Known               []string // the words from which Value must be; empty where any text may stand
}

func (e *FilterError) Error() string { return fmt.Sprintf("%s=%s: %s", e.Name, e.Value, e.Reason) }

// Contexts returns the filter of contexts, and the statuses that are asked for; none for all. Its
// error is a *[FilterError].
func (f *ContextFilter) Contexts() (c store.ContextFilter, statuses []journal.RunStatus, err error) {
	c = store.ContextFilter{
		Plan: f.Plan, Since: f.Since, Until: f.Until, Text: f.Text, Parent: f.Parent, Retrying: f.Retrying,
		Held: f.Held, WaitingOn: f.Waiting.String(),
	}
	if c.Labels, err = ReadLabels(f.Label); err != nil {
		return c, nil, err
	}
	for _, word := range f.Status {
		status := journal.RunStatus(word)
		switch {
		case word == StatusHeld:
			c.Held = true
		case !slices.Contains(journal.RunStatuses(), status):
			return c, nil, &FilterError{Name: "status", Value: word, Reason: "there is no such status", Known: StatusWords()}
		default:
			statuses = append(statuses, status)
		}
	}
	if len(f.Status) > len(statuses) && len(statuses) > 0 {
		return c, nil, &FilterError{Name: "status", Value: StatusHeld, Reason: "it picks runs that wait for a person, and goes with no other status"}
	}
	return c, statuses, nil
}

// StatusHeld is the word by which lists are asked for runs that wait for a person: it is not the
// status of a run.
const StatusHeld = "held"

// StatusWords lists the words for statuses by which runs can be picked.
func StatusWords() []string {
	words := []string{StatusHeld}
	for _, status := range journal.RunStatuses() {
		words = append(words, string(status))
	}
	return words
}

// ReadLabels reads labels that are written as NAME=VALUE. Its error is a *[FilterError].
func ReadLabels(list []string) (labels map[string]string, err error) {
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if _, twice := labels[name]; !ok || twice {
			return nil, &FilterError{Name: "label", Value: text, Reason: "expected NAME=VALUE, each name once"}
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	if err := store.CheckLabels(labels); err != nil {
		return nil, &FilterError{Name: "label", Value: strings.Join(list, ","), Reason: err.Error()}
	}
	return labels, nil
}

// CallFilter is what a list of calls is asked for. Its empty fields pick all.
type CallFilter struct {
	Status []string  `query:"status" kind:"words" jsonschema:"Calls with one of these statuses or outcomes, a list with commas."`
	Tool   []string  `query:"tool" kind:"words" jsonschema:"Calls of these tools, a list with commas."`
	Since  time.Time `query:"since" kind:"date" jsonschema:"Calls that began at this time or later: a date, or a span before now, as 90s or 7d."`
	Text   string    `query:"q" jsonschema:"Text in the call's number, tool or instance, in any case."`
}

// Check returns a *[FilterError] for a status that there is not.
func (f *CallFilter) Check() error {
	for _, word := range f.Status {
		if !slices.Contains(journal.Outcomes(), word) {
			return &FilterError{Name: "status", Value: word, Reason: "there is no such status", Known: journal.Outcomes()}
		}
	}
	return nil
}

// Picks reports whether the filter picks a call.
func (f *CallFilter) Picks(l *journal.Line) bool {
	isOfTool := len(f.Tool) == 0 || slices.Contains(f.Tool, l.Tool)
	isSince := f.Since.IsZero() || !l.Started.Before(f.Since)
	return isOfTool && isSince && l.Is(f.Status) && l.HasText(f.Text)
}

// LogFilter is what a list of messages is asked for. Its empty fields pick all.
type LogFilter struct {
	Kind  string     `query:"kind" jsonschema:"Data of this kind, or tool, plan, system and text messages."`
	Path  store.Path `query:"path" kind:"path" jsonschema:"Messages that touch this path."`
	Since time.Time  `query:"since" kind:"date" jsonschema:"From this time on: a date, or a span before now, as 90s or 7d."`
	Tool  []string   `query:"tool" kind:"words" jsonschema:"What calls of these tools wrote, a list with commas."`
	Text  string     `query:"q" jsonschema:"Text in the message, in any case."`
}

// kindless are the types whose messages have no kind. Where a kind has that name too, both are
// meant.
var kindless = []store.Type{store.TypeTool, store.TypePlan, store.TypeSystem, store.TypeText}

// Messages returns the filter of messages. What it leaves to be asked is answered by
// [LogFilter.Picks].
func (f *LogFilter) Messages(context string) store.Filter {
	m := store.Filter{Context: context, Path: f.Path, Since: f.Since}
	if kind := f.kind(); !slices.Contains(kindless, store.Type(kind)) {
		m.Kind = kind
	}
	return m
}

func (f *LogFilter) kind() string { return strings.TrimPrefix(f.Kind, store.Dagger) }

// Picks reports whether the filter picks a message of those that [LogFilter.Messages] gives.
func (f *LogFilter) Picks(m *store.Message) bool {
	producer, _ := m.Producer.(map[string]any)
	tool, _ := producer["_tool"].(string)
	isOfTool := len(f.Tool) == 0 || slices.Contains(f.Tool, tool)
	isOfKind := f.Kind == "" || m.Kind == f.kind() || string(m.Type) == f.kind()
	return isOfTool && isOfKind && f.hasText(m)
}

func (f *LogFilter) hasText(m *store.Message) bool {
	return f.Text == "" || strings.Contains(strings.ToLower(string(store.EncodeJSON(m))), strings.ToLower(f.Text))
}

// maxDays bounds a number of days: a calendar goes no further back.
const maxDays = 700_000

// ReadMoment reads a time for a filter: a span before now, which may be in days, or a date, which
// without a zone is in the machine's, as times are shown. ok is false if it is neither.
func ReadMoment(text string) (t time.Time, ok bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			return time.Now().AddDate(0, 0, -n), true
		}
	}
	if span, err := duration.Parse(text); err == nil && span >= 0 {
		return time.Now().Add(-span), true
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
