package page

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"obelus/engine/journal"
	"obelus/engine/numeral"
	"obelus/engine/plan"
	"obelus/engine/visible"
	"obelus/store"
)

// duration returns a number of milliseconds with three digits at most.
func duration(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", ms)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// ago returns an element for a time that is a text of RFC 3339. Its text is the time of day, or the
// date; the page's script puts how long ago that is in its place.
func ago(text string) template.HTML {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return template.HTML(template.HTMLEscapeString(text))
	}
	t = t.UTC()
	shown := t.Format("15:04:05")
	if t.Format(time.DateOnly) != time.Now().UTC().Format(time.DateOnly) {
		shown = t.Format(time.DateOnly)
	}
	// A formatted time has nothing to escape.
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, t.Format(time.RFC3339Nano), t.Format("2006-01-02 15:04:05.000 MST"), shown))
}

// encode returns a value as JSON, in which the characters are escaped that [visible.Text] escapes.
func encode(v any) string { return visible.Text(string(store.EncodeJSON(v))) }

// lineLength is how much of a value is shown on one line.
const lineLength = 120

// oneLine returns a value as JSON on one line, shortened.
func oneLine(v any) string { return cutText(encode(v), lineLength) }

// cutText shortens a text to a number of characters.
func cutText(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n++; n == most {
			return text[:i] + "…"
		}
	}
	return text
}

// shape returns the sign that stands before a status, so that colour is never alone.
func shape(status string) string {
	shapes := map[string]string{
		string(journal.Done): "✓", string(journal.Failed): "✗", string(journal.Running): "▶", string(journal.Waiting): "◷",
		string(journal.Held): "◆", string(journal.Skipped): "–", string(journal.Blocked): "·", string(journal.Ready): "○",
		string(journal.Interrupted): "‖", string(journal.Cancelled): "⊘", string(journal.InDoubt): "?", "retrying": "↻",
		string(journal.RunContinued): "→", journal.OutcomeHandled: "✓", journal.OutcomeRejected: "✗",
	}
	if s, ok := shapes[status]; ok {
		return s
	}
	return "○"
}

// cursorSeq reads the seq at which a list of messages goes on; 0 for its beginning.
func cursorSeq(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// commandOf returns a command line that can be pasted into a shell.
func commandOf(words ...string) string {
	return visible.Command(append([]string{"obelus"}, words...)...)
}

// commandWith is commandOf for arguments at the end, which may look like flags.
func commandWith(words []string, arguments ...string) string {
	if slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "-") }) {
		words = append(words, "--")
	}
	return commandOf(append(words, arguments...)...)
}

// usageText describes the usage of a model; empty for none.
func usageText(u *plan.Usage) string {
	if u == nil {
		return ""
	}
	text := fmt.Sprintf("%s: %d requests, %s tokens in, %s out", u.Model, u.Requests, numeral.Thousands(u.Input), numeral.Thousands(u.Output))
	if u.Requests == 1 {
		text = strings.Replace(text, "requests", "request", 1)
	}
	if u.Cost != nil {
		text += fmt.Sprintf(", $%.4f", *u.Cost)
	}
	if u.Group != "" {
		text = u.Model + ": answered together with " + u.Group
	}
	return text
}

// cond returns one of two texts.
func cond(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
