package schedule

import (
	"fmt"
	"strings"
	"time"

	"obelus/engine/lazyregexp"
)

// nameLayout is the due time in the name of a run.
const nameLayout = "20060102T150405Z"

// recordPrefix begins the names of the contexts that keep the records of schedules.
const recordPrefix = "schedule."

// maxName is the length of a name with which the names of its runs are names of contexts.
const maxName = 64 - len("-"+nameLayout)

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]*$`)

// CheckName refuses a text that can't name a schedule.
func CheckName(name string) error {
	if !validName().MatchString(name) || len(name) > maxName {
		return fmt.Errorf("%q is no name for it: it has up to %d letters, digits, _ and -, and begins with a letter", name, maxName)
	}
	return nil
}

// RunName names the context of a schedule's run that is due at a time.
func RunName(name string, due time.Time) string {
	return name + "-" + due.UTC().Format(nameLayout)
}

// RunPrefix begins the names of the runs of a schedule. Names of runs of other schedules may begin
// with it too: see [DueOf].
func RunPrefix(name string) string { return name + "-" }

// DueOf returns when the run of a schedule in a context was due. It is false for any other context.
func DueOf(name, context string) (due time.Time, ok bool) {
	text, ok := strings.CutPrefix(context, RunPrefix(name))
	if !ok {
		return time.Time{}, false
	}
	due, err := time.Parse(nameLayout, text)
	return due, err == nil
}

// RecordName names the context that keeps the record of a schedule: since when it is known, and
// which of its runs were skipped.
func RecordName(name string) string { return recordPrefix + name }

// IsRecord reports whether a context is one that RecordName names.
func IsRecord(context string) bool { return strings.HasPrefix(context, recordPrefix) }
