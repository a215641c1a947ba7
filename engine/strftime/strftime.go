// Package strftime writes times by the layouts of strftime.
package strftime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// LayoutError is a layout that means nothing, as opposed to a text that does
// not fit it.
type LayoutError string

func (e LayoutError) Error() string { return string(e) }

// MaxLayout bounds layouts, and the texts that they read, in bytes.
const MaxLayout = 4096

// ErrTooLong is the error of a layout that is longer than MaxLayout.
var ErrTooLong = LayoutError(fmt.Sprintf("the layout is longer than %d bytes", MaxLayout))

// Format writes a time as strftime does, in English; %f are microseconds, %L milliseconds. The
// error is a [LayoutError].
func Format(t time.Time, layout string) (string, error) {
	if len(layout) > MaxLayout {
		return "", ErrTooLong
	}
	var b strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' {
			b.WriteByte(layout[i])
			continue
		}
		if i++; i == len(layout) {
			return "", LayoutError("the layout ends with %")
		}
		text, ok := formatVerb(t, layout[i])
		if !ok {
			return "", LayoutError(fmt.Sprintf("unknown %%%c in the layout", layout[i]))
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func formatVerb(t time.Time, verb byte) (string, bool) {
	if layout, ok := verbs[verb]; ok {
		return t.Format(layout), true
	}
	switch verb {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'L':
		return fmt.Sprintf("%03d", t.Nanosecond()/1e6), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'U', 'W': // the week; a year's first one begins with its first Sunday, or Monday
		since := int(t.Weekday())
		if verb == 'W' {
			since = (since + 6) % 7
		}
		return fmt.Sprintf("%02d", (t.YearDay()+6-since)/7), true
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 'G':
		year, _ := t.ISOWeek()
		return strconv.Itoa(year), true
	case 'g':
		year, _ := t.ISOWeek()
		return fmt.Sprintf("%02d", year%100), true
	case 'V':
		_, week := t.ISOWeek()
		return fmt.Sprintf("%02d", week), true
	}
	return "", false
}

// GoLayout is the layout of package time for a verb; empty if there is none.
func GoLayout(verb byte) string { return verbs[verb] }

// verbs are those that Go's own layouts have.
var verbs = map[byte]string{
	'A': "Monday", 'B': "January", 'D': "01/02/06", 'F': "2006-01-02", 'H': "15", 'I': "03", 'M': "04", 'R': "15:04",
	'S': "05", 'T': "15:04:05", 'X': "15:04:05", 'Y': "2006", 'Z': "MST", 'a': "Mon", 'b': "Jan", 'c': "Mon Jan _2 15:04:05 2006",
	'd': "02", 'e': "_2", 'h': "Jan", 'j': "002", 'm': "01", 'p': "PM", 'r': "03:04:05 PM", 'x': "01/02/06", 'y': "06", 'z': "-0700",
}
