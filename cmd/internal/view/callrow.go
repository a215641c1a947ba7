package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/cmd/internal/human"
	"obelus/engine/journal"
	"obelus/engine/numeral"
	"obelus/store"
)

// CallRow returns the cells of a call in a list; with verbose, its script or model too.
func CallRow(r journal.Record, verbose bool) []string {
	span, script := "-", "-"
	if r.Started != "" && r.Status.Settled() {
		span = human.Duration(Elapsed(r))
	}
	if r.Script != "" {
		script = r.Script + "@" + r.SHA256[:min(7, len(r.SHA256))]
	}
	if m := r.Model; m != nil {
		by := "model " + m.Model
		if m.Requests > 0 {
			by += fmt.Sprintf(", %s + %s tokens", numeral.Thousands(m.Input), numeral.Thousands(m.Output))
		}
		script = strings.TrimPrefix(script+" "+by, "- ")
	}
	result := strings.Join(r.Writes, " ")
	switch {
	case r.Status == journal.Failed && r.Error != nil:
		result = human.FirstLine(Failure(r, verbose))
	case r.Handled != nil:
		result += " (" + HandledFailure(r) + ")"
	case r.Rests && !r.Status.Settled():
		result = FailedAttempt(r) + human.FirstLine(Failure(r, verbose))
	case r.Status == journal.Held:
		result = "for a person: " + Arguments(r.Hold) + Corrections(r)
	case r.Status == journal.Ready:
		result = fmt.Sprintf("%s by %s, and goes on with the run", r.Hold.Decision, r.Hold.Name())
	case r.Error != nil && slices.Contains([]journal.Status{journal.InDoubt, journal.Interrupted, journal.Cancelled, journal.Blocked}, r.Status):
		result = "the try before failed: " + human.FirstLine(Failure(r, verbose))
	case r.Status == journal.InDoubt && r.Reason == "":
		result = "it had started, and must not run twice: resume --retry, --skip or --result " + r.Call
	case r.Reason != "" && result != "":
		result += " (" + r.Reason + ")"
	case r.Reason != "":
		if result = r.Reason; Until(r) != "" {
			result += ", " + Until(r)
		}
	case Until(r) != "":
		result = "waits " + Until(r)
	case len(r.WaitingOn) > 0:
		result = "waits for " + strings.Join(r.WaitingOn, " ")
	}
	if note := r.AnswerNote(); note != "" && result != "" {
		result += " (" + note + ")"
	}
	tries := fmt.Sprint(r.Attempts)
	// Attempts are counted when they end.
	if (r.Status == journal.Running || r.Status == journal.InDoubt) && r.Attempts == 0 {
		tries = "-"
	}
	row := []string{r.Call, Title(r.Tool, r.Instance), r.Outcome(), tries, span, result}
	if verbose {
		row = slices.Insert(row, 5, script)
	}
	return row
}

// Failure returns a failed call's error for a person; with verbose, its traceback too.
func Failure(r journal.Record, verbose bool) string {
	message, ok := r.Error["message"].(string)
	if !ok {
		message = string(store.EncodeJSON(r.Error))
	}
	if script, ok := r.Error["script"].(string); ok && !strings.Contains(message, script) {
		message = script + ": " + message
	}
	if traceback, ok := r.Error["traceback"].(string); ok && verbose {
		message += "\n  " + strings.ReplaceAll(strings.TrimSpace(traceback), "\n", "\n  ")
	}
	return message
}

// Corrections says what a person made of a call before its plan ran.
func Corrections(r journal.Record) (text string) {
	for _, place := range slices.Sorted(maps.Keys(r.Corrected)) {
		text += fmt.Sprintf(" (%s = %s)", place, r.Corrected[place])
	}
	return text
}
