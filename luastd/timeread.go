package luastd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"obelus/engine/lazyregexp"
)

// rfc3339 is a time as in RFC 3339, or a date, or a time without a zone.
var rfc3339 = lazyregexp.New(`^(\d{4})-(\d\d)-(\d\d)` +
	`(?:[Tt](\d\d):(\d\d):(\d\d)([.,]\d+)?([Zz]|[+-](\d\d):(\d\d))?)?$`)

// parseRFC3339 parses a time. Its errors are in words for the script's author.
func parseRFC3339(text string) (time.Time, error) {
	m := rfc3339().FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, errors.New("2006-01-02T15:04:05Z")
	}
	fields := timeFields{}
	for i, verb := range []byte("YmdHMS") {
		if m[i+1] != "" {
			fields[verb], _ = strconv.Atoi(m[i+1])
		}
	}
	offsetHours, _ := strconv.Atoi(m[9])
	offsetMinutes, _ := strconv.Atoi(m[10])
	switch wrong := fields.wrong(); {
	case wrong != "":
		return time.Time{}, errors.New(wrong)
	case m[4] == "":
		return time.Time{}, errors.New("it is a date alone, which the layout %Y-%m-%d reads")
	case m[8] == "":
		return time.Time{}, errors.New("at its end Z for UTC, or an offset like +01:00, is missing")
	case offsetHours > 23 || offsetMinutes > 59:
		return time.Time{}, fmt.Errorf("there is no offset %s", m[8])
	}
	fraction := (strings.TrimLeft(m[7], ".,") + "000000000")[:9]
	nanoseconds, _ := strconv.Atoi(fraction)
	offset := (offsetHours*60 + offsetMinutes) * 60
	if m[8][0] == '-' {
		offset = -offset
	}
	t := time.Date(fields['Y'], time.Month(fields['m']), fields['d'], fields['H'], fields['M'],
		min(fields['S'], 59), nanoseconds, time.FixedZone("", offset))
	return fields.leap(t)
}

// timeFields are the numbers of a time that has been read, by their verbs in a layout.
type timeFields map[byte]int

// put keeps what was read by a verb.
func (f timeFields) put(verb byte, value string) {
	number, _ := strconv.Atoi(value[:countDigits(value)])
	switch verb {
	case 'e':
		f['d'] = number
	case 'y': // as Go has it
		f['Y'] = 1900 + number
		if number < 69 {
			f['Y'] += 100
		}
	case 'b', 'B', 'h':
		for month := time.January; month <= time.December; month++ {
			if len(value) >= 3 && strings.EqualFold(value[:3], month.String()[:3]) {
				f['m'] = int(month)
			}
		}
	case 'Y', 'm', 'd', 'j', 'H', 'I', 'M', 'S':
		f[verb] = number
	}
}

// wrong says which field has a number that it can't have; it is empty if there is none.
func (f timeFields) wrong() string {
	out := func(verb byte, least, most int) bool {
		n, given := f[verb]
		return given && (n < least || n > most)
	}
	year, hasYear := f['Y']
	month, hasMonth := f['m']
	if !hasYear {
		year = 2000 // which has all days that a year may have
	}
	days, of := 31, "a month"
	if hasMonth && month >= 1 && month <= 12 {
		days, of = time.Date(year, time.Month(month+1), 0, 0, 0, 0, 0, time.UTC).Day(), time.Month(month).String()
		if hasYear {
			of += fmt.Sprintf(" %04d", year)
		}
	}
	switch daysOfYear := time.Date(year, time.December, 31, 0, 0, 0, 0, time.UTC).YearDay(); {
	case out('m', 1, 12):
		return fmt.Sprintf("there is no month %d", month)
	case out('d', 1, days) && f['d'] > 0:
		return fmt.Sprintf("%s has %d days", of, days)
	case out('d', 1, days):
		return "there is no day 0"
	case out('j', 1, daysOfYear):
		return fmt.Sprintf("there is no day %d of a year with %d days", f['j'], daysOfYear)
	case out('H', 0, 23):
		return fmt.Sprintf("there is no hour %d: 23 is the last one of a day", f['H'])
	case out('I', 1, 12):
		return fmt.Sprintf("there is no hour %d with AM or PM", f['I'])
	case out('M', 0, 59):
		return fmt.Sprintf("there is no minute %d", f['M'])
	case out('S', 0, 60):
		return fmt.Sprintf("there is no second %d", f['S'])
	}
	return ""
}

// leap returns t, or the second after it if the second was read as 60 and t has 59. Its error
// says that no leap second can be there.
func (f timeFields) leap(t time.Time) (time.Time, error) {
	if f['S'] != 60 {
		return t, nil
	}
	t = t.Add(time.Second)
	if u := t.UTC(); u.Day() != 1 || u.Hour()+u.Minute()+u.Second() != 0 {
		return time.Time{}, errors.New("a second 60 can end a month in UTC only")
	}
	return t, nil
}
