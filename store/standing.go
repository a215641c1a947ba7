package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Standing describes the newest run of a context, for lists and for servers that resume runs. A
// batch replaces it as a whole ([Batch].Standing); the log does not interpret it. A context in
// which nothing has run has the zero Standing.
type Standing struct {
	Status string // of the run, a word
	Plan   string // the plan's file
	Error  string // why it failed, by itself or by a call

	Started time.Time // when the run began; zero if that is not known
	// Worked is for how long the run had been at work when it ended or halted last, without the times
	// in which it had halted. While it is under way it has been at work since Due besides.
	Worked time.Duration
	Tick   int

	// Numbers of the calls of its newest tick: all of them, those that are done, have failed or wait
	// for something, and Held, the decisions that a person is to make.
	Calls, Done, Failed, Waiting, Held int

	// Retrying is the number of its calls that have failed and pause before the next attempt.
	Retrying int

	// Background is the number of calls of all its ticks for which it does not wait and that have not
	// ended, once it has ended or halted.
	Background int

	// WaitingOn are the paths that a waiting run waits for, sorted: the first [MostWaitingOn].
	WaitingOn []string

	// Due is when the run is to be looked at if nothing holds its lease, to the millisecond; zero for
	// never. It is in the past for a run that is under way, so that a crash leaves it due.
	Due time.Time

	// Wakes reports whether a batch with [Batch].Wake makes it due at once.
	Wakes bool

	Labels map[string]string // that the run was started with
}

// MostWaitingOn bounds the paths in a standing.
const MostWaitingOn = 32

// Equal reports whether two standings are the same.
func (s Standing) Equal(other Standing) bool {
	return s.Status == other.Status && s.Plan == other.Plan && s.Error == other.Error && s.Tick == other.Tick &&
		s.Calls == other.Calls && s.Done == other.Done && s.Failed == other.Failed && s.Waiting == other.Waiting && s.Held == other.Held &&
		s.Retrying == other.Retrying && s.Background == other.Background && s.Started.Equal(other.Started) && s.Worked == other.Worked && slices.Equal(s.WaitingOn, other.WaitingOn) && s.Due.Equal(other.Due) && s.Wakes == other.Wakes && maps.Equal(s.Labels, other.Labels)
}

// ContextFilter picks contexts. Its zero fields pick all.
type ContextFilter struct {
	Prefix   string    // of the name
	Among    []string  // only these contexts; nil for all
	Roots    bool      // only contexts that are no delegate's
	Parent   string    // only contexts of this context's delegates
	Fork     string    // only forks of this context
	Since    time.Time // only contexts that were appended to at this time or later
	Until    time.Time // only contexts that were appended to before this time
	Statuses []string  // only those with one of these statuses, "" for contexts in which nothing has run
	Plan     string    // only runs of this plan's file
	Text     string    // only those with this text in the name, the plan or a label, in any case
	Labels   map[string]string
	Held     bool      // only those that wait for a person's decision
	Due      time.Time // only those due by this time

	Retrying  bool   // only those with calls that pause before another attempt
	WaitingOn string // only those that wait for this path, as far as their standings name it

	// After continues a list: only contexts that come after this one.
	After ContextMark
}

// ContextMark is the place of a context in the order of a list: [ContextInfo].Updated and the name.
type ContextMark struct {
	Updated time.Time
	Context string
}

// Picks reports whether a context is one that the filter picks.
func (f *ContextFilter) Picks(info *ContextInfo) bool {
	s := &info.Standing
	switch {
	case !strings.HasPrefix(info.Context, f.Prefix),
		f.Among != nil && !slices.Contains(f.Among, info.Context),
		f.Roots && info.Origin.Parent != "",
		f.Parent != "" && info.Origin.Parent != f.Parent,
		f.Fork != "" && info.Origin.Fork != f.Fork,
		!f.Since.IsZero() && info.Updated.Before(f.Since),
		!f.Until.IsZero() && !info.Updated.Before(f.Until),
		f.Statuses != nil && !slices.Contains(f.Statuses, s.Status),
		f.Plan != "" && s.Plan != f.Plan,
		f.Text != "" && !f.hasText(info),
		f.Held && s.Held == 0,
		f.Retrying && s.Retrying == 0,
		f.WaitingOn != "" && !slices.Contains(s.WaitingOn, f.WaitingOn),
		!f.Due.IsZero() && (s.Due.IsZero() || s.Due.After(f.Due)):
		return false
	}
	for name, value := range f.Labels {
		if got, ok := s.Labels[name]; !ok || got != value {
			return false
		}
	}
	return f.After.Context == "" || info.Mark().Compare(f.After) > 0
}

// hasText reports whether a context has the filter's text. Letters of ASCII match in any case.
func (f *ContextFilter) hasText(info *ContextInfo) bool {
	text := LowerASCII(f.Text)
	found := func(in string) bool { return strings.Contains(LowerASCII(in), text) }
	for _, value := range info.Standing.Labels {
		if found(value) {
			return true
		}
	}
	return found(info.Context) || found(info.Standing.Plan)
}

// LowerASCII returns a text with the letters A to Z in lower case, as SQLite does it.
func LowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

// Mark returns the place of a context in lists.
func (i *ContextInfo) Mark() ContextMark { return ContextMark{i.Updated, i.Context} }

// Compare orders contexts as lists do, the one that was appended to last first: it is negative
// where m comes before other.
func (m ContextMark) Compare(other ContextMark) int {
	if c := other.Updated.Compare(m.Updated); c != 0 {
		return c
	}
	return strings.Compare(other.Context, m.Context)
}

// Bounds on the labels of a run.
const (
	mostLabels   = 32
	longestLabel = 200 // of a value, in bytes
)

// CheckLabels refuses labels that no run may have: a name has the characters of a context's, and a
// value is short text on one line.
func CheckLabels(labels map[string]string) error {
	switch {
	case len(labels) == 0:
		return nil
	case len(labels) > mostLabels:
		return fmt.Errorf("there are %d labels: a run may have %d", len(labels), mostLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		switch {
		case CheckStoredContext(name) != nil:
			return fmt.Errorf("%q is no name for a label: it has 1 to 64 letters, digits, . _ and -", name)
		case len(value) > longestLabel:
			return fmt.Errorf("label %s has %d bytes: it may have %d", name, len(value), longestLabel)
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			return fmt.Errorf("label %s: %q is not text on one line", name, value)
		}
	}
	return nil
}
