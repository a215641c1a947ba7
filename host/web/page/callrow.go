package page

import (
	"fmt"
	"strings"

	"obelus/engine/journal"
)

// callRow is a call in a list.
type callRow struct {
	journal.Record
	ID   string
	Word string // its outcome
	Text string // the paths that it wrote, or the reason why it has no result
}

// statusCount is a status in the line of counts above a list.
type statusCount struct {
	Word   string
	Count  int64
	Query  string // of the list of just these
	Picked bool
}

// mostRows is the number of rows of a window.
const mostRows = 200

// callWords are the outcomes and states of calls, in the order in which they are counted.
var callWords = []string{
	string(journal.Failed), journal.OutcomeRejected, string(journal.InDoubt), string(journal.Held), journal.Retrying, string(journal.Running), string(journal.Waiting),
	string(journal.Interrupted), string(journal.Ready), string(journal.Blocked), string(journal.Done), journal.OutcomeHandled, string(journal.Skipped), string(journal.Cancelled),
}

// rankOf sorts calls that failed first, then those under way, then the rest.
func rankOf(status journal.Status) int {
	switch status {
	case journal.Failed, journal.InDoubt:
		return 0
	case journal.Held, journal.Running, journal.Waiting, journal.Interrupted:
		return 1
	}
	return 2
}

func rowOfCall(r journal.Record) callRow {
	row := callRow{Record: r, ID: "call-" + r.Call, Word: journal.WordOf(&r), Text: resultText(r)}
	if note := r.AnswerNote(); note != "" {
		row.Text = strings.TrimSpace(row.Text + " (" + note + ")")
	}
	return row
}

// resultText returns the result of a call in a line: its paths, its error, or what it waits for.
func resultText(r journal.Record) string {
	text := strings.Join(r.Writes, " ")
	switch {
	case r.Status == journal.Failed && r.Error != nil:
		return r.FailureText()
	case r.Handled != nil:
		return text + " (" + r.HandledText() + ")"
	case r.AwaitsRetry():
		return fmt.Sprintf("try %d failed: %s", r.Attempts, r.FailureText())
	case r.Status == journal.Held && r.Hold != nil:
		return "for a person"
	case r.Status == journal.InDoubt && r.Reason == "":
		return "it had started, and must not run twice"
	case r.Reason != "":
		return strings.TrimSpace(text + " " + r.Reason)
	case r.Due != "" && !r.Status.Settled():
		return "waits until " + r.Due
	case len(r.WaitingOn) > 0 && !r.Status.Settled():
		return "waits for " + strings.Join(r.WaitingOn, " ")
	}
	return text
}
