package luastd

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/engine/strftime"

	lua "github.com/yuin/gopher-lua"
)

// time: points in time, in seconds since 1970. In Lua:
//
//	local time = require("time")
//	local t = assert(time.parse("2024-02-28T12:00:00Z"))
//	assert(time.format(t + 24 * 3600, "%d.%m.%Y") == "29.02.2024")
//	assert(time.format(t + 0.5) == "2024-02-28T12:00:00.5Z")
//
// Times have microseconds. A layout writes them by %f, six digits, as in Python, or by %L, the
// three digits of milliseconds, as in Ruby: %H:%M:%S.%L. When a text is read, %S takes a fraction
// that follows it.
//
// A leap second, 23:59:60 in UTC at the end of a month, is read as the second after it, as POSIX
// has it: 2016-12-31T23:59:60Z is 2017-01-01T00:00:00Z.
var timeFuncs = []Func{
	{"format", timeFormat},
	{"now", timeNow},
	{"parse", timeParse},
	{"sleep", timeSleep},
}

// time.format(t, [layout]) → text; t in seconds since 1970, in UTC; layout as
// in strftime, RFC 3339 without one, with a fraction if t has one
func timeFormat(e *Env, L *lua.LState) int {
	t, err := Time(float64(L.CheckNumber(1)))
	if err != nil {
		L.ArgError(1, err.Error())
	}
	text := t.Format(time.RFC3339Nano)
	if L.Get(2) != lua.LNil {
		if text, err = strftime.Format(t, L.CheckString(2)); err != nil {
			L.ArgError(2, err.Error())
		}
	}
	L.Push(lua.LString(text))
	return 1
}

// time.now() → seconds since 1970, with fractions
func timeNow(e *Env, L *lua.LState) int {
	L.Push(lua.LNumber(seconds(e.Clock.Now())))
	return 1
}

// time.parse(text, [layout]) → seconds since 1970 | nil, err; layout as in
// strptime, RFC 3339 without one. Numbers need not have all their digits, except for
// %Y. %f and %L are read behind %S and a point or a comma. Of zones %z reads the offset,
// +0100, +01:00 or Z, and %Z the names UTC, GMT and Z alone; without a zone it is UTC.
func timeParse(e *Env, L *lua.LState) int {
	text, layout := L.CheckString(1), L.OptString(2, "")
	if len(text) > strftime.MaxLayout {
		return failed(L, fmt.Sprintf("text of more than %d bytes is no time", strftime.MaxLayout))
	}
	if layout == "" {
		t, err := parseRFC3339(text)
		if err != nil {
			return failed(L, fmt.Sprintf("%q is not a time as in RFC 3339: %s", text, err))
		}
		L.Push(lua.LNumber(seconds(t)))
		return 1
	}
	t, err := parseTime(text, layout)
	if bad, ok := err.(strftime.LayoutError); ok {
		L.ArgError(2, bad.Error())
	}
	if err != nil {
		return failed(L, err.Error())
	}
	L.Push(lua.LNumber(seconds(t)))
	return 1
}

// time.sleep(seconds)
func timeSleep(e *Env, L *lua.LState) int {
	n := float64(L.CheckNumber(1))
	if !(n >= 0) {
		L.ArgError(1, "must not be negative")
	}
	e.Effect(L, "time.sleep")
	ctx, cancel := e.Context()
	defer cancel()
	d := time.Duration(math.MaxInt64)
	if n < float64(math.MaxInt64/int64(time.Second)) {
		d = time.Duration(n * float64(time.Second))
	}
	if err := e.Clock.Sleep(ctx, d); err != nil {
		e.charge(L, 1<<20) // the deadline has passed: the budget says so in its own words
		L.RaiseError("the sleep was interrupted")
	}
	return 0
}

func seconds(t time.Time) float64 {
	return float64(t.Unix()) + float64(t.Nanosecond()/1000)/1e6
}

var errNoTime = errors.New("must be a time in the years 0 to 9999, in seconds since 1970")

// Time is the time in UTC that a script means by seconds since 1970, in a year
// of four digits, as layouts write them: of all that are the same number, the one with
// the fewest digits. Far from 1970 a number has no microseconds of its own.
func Time(s float64) (time.Time, error) {
	const first, end = -62167219200, 253402300800
	if !(s >= first && s < end) { // NaN too
		return time.Time{}, errNoTime
	}
	whole := math.Floor(s)
	t := time.Unix(int64(whole), int64(math.Round((s-whole)*1e6))*1000).UTC()
	for unit := time.Second; unit > time.Microsecond; unit /= 10 {
		if short := t.Round(unit); seconds(short) == s {
			return short, nil
		}
	}
	return t, nil
}

// parseTime reads a time by a layout of strptime; without a zone it is UTC.
func parseTime(text, layout string) (time.Time, error) {
	if len(layout) > strftime.MaxLayout {
		return time.Time{}, strftime.ErrTooLong
	}
	if layout == "%s" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return time.Time{}, misfit(text, layout)
		}
		return time.Unix(n, 0), nil
	}
	items, err := layoutItems(layout)
	if err != nil {
		return time.Time{}, err
	}
	fields := timeFields{}
	// They are apart: together, the end of one layout and the start of the next could be a third.
	var layouts, values []string
	rest, ok := text, true
	// A year in full tells which one of two digits is meant.
	full, short := slices.Contains(items, "%Y"), ""
	for _, item := range items {
		value := ""
		if value, rest, ok = takeItem(rest, item); !ok {
			return time.Time{}, misfit(text, layout)
		}
		verb := item[len(item)-1]
		if len(item) == 2 && !(verb == 'y' && full) {
			fields.put(verb, value)
		}
		if verb == 'S' && fields['S'] == 60 {
			value = "59" + value[2:]
		}
		switch {
		case item == "%Z" && !slices.Contains(zones, value):
			return time.Time{}, fmt.Errorf("the zone %q is not known: of names only UTC, GMT and Z are, and %%z reads an offset like +0100", value)
		case item == "%y" && full:
			short = whole(verb, value)
		case len(item) == 2 && item != "%Z":
			layouts, values = append(layouts, cmp.Or(readVerbs[verb], strftime.GoLayout(verb))), append(values, whole(verb, value))
		}
	}
	t, err := time.ParseInLocation(strings.Join(layouts, "|"), strings.Join(values, "|"), time.UTC)
	if err != nil || rest != "" || short != "" && short != t.Format("06") {
		if wrong := fields.wrong(); wrong != "" {
			return time.Time{}, fmt.Errorf("%w: %s", misfit(text, layout), wrong)
		}
		return time.Time{}, misfit(text, layout)
	}
	if t, err = fields.leap(t); err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", misfit(text, layout), err)
	}
	return t, nil
}

// whole is the text that a verb has read, normalised where its layout is stricter.
func whole(verb byte, value string) string {
	switch {
	case verb == 'z' && value == "Z":
		return "+0000"
	case verb == 'p':
		return strings.ToUpper(value)
	case verb == 'z' && len(value) == len("+01:00"):
		return value[:3] + value[4:]
	case (verb == 'j' || verb == 'y') && value != "":
		return strings.Repeat("0", verbDigits[verb]-len(value)) + value
	}
	return value
}

func misfit(text, layout string) error {
	return fmt.Errorf("%q does not fit the layout %q", text, layout)
}

// composed are the verbs that stand for several.
var composed = map[byte]string{
	'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M", 'T': "%H:%M:%S", 'X': "%H:%M:%S", 'c': "%a %b %e %H:%M:%S %Y", 'r': "%I:%M:%S %p", 'x': "%m/%d/%y",
}

// readVerbs are the verbs whose numbers need not have all digits to be read.
var readVerbs = map[byte]string{'I': "3", 'M': "4", 'S': "5", 'd': "2", 'e': "2", 'm': "1"}

// verbDigits is how many digits at most a verb has.
var verbDigits = map[byte]int{'H': 2, 'I': 2, 'M': 2, 'S': 2, 'Y': 4, 'd': 2, 'e': 2, 'j': 3, 'm': 2, 'y': 2}

// zones are the names of zones that mean the same everywhere.
var zones = []string{"UTC", "GMT", "Z"}

// layoutItems are the parts of a layout: a verb with its %, or a character that
// stands for itself.
func layoutItems(layout string) (items []string, err error) {
	for i := 0; i < len(layout); i++ {
		if c := layout[i]; c != '%' {
			if c >= '0' && c <= '9' || isLetter(c) && c != 'T' && c != 'Z' {
				return nil, strftime.LayoutError(fmt.Sprintf("%q in the layout is neither a %% verb nor punctuation", layout[i:i+1]))
			}
			if c != ' ' || i == 0 || layout[i-1] != ' ' { // one stands for any number of them
				items = append(items, layout[i:i+1])
			}
			continue
		}
		if i++; i == len(layout) {
			return nil, strftime.LayoutError("the layout ends with %")
		}
		switch whole, several := composed[layout[i]]; {
		case several:
			parts, _ := layoutItems(whole)
			items = append(items, parts...)
		case layout[i] == '%':
			items = append(items, "%")
		case behindSeconds(items) && (layout[i] == 'f' || layout[i] == 'L'):
			items = items[:len(items)-1] // %S reads a fraction
		case strftime.GoLayout(layout[i]) != "":
			items = append(items, layout[i-1:i+1])
		default:
			return nil, strftime.LayoutError(fmt.Sprintf("%%%c in the layout can't be read back", layout[i]))
		}
	}
	return items, nil
}

// behindSeconds reports whether the last parts of a layout are %S and a point or a comma.
func behindSeconds(items []string) bool {
	n := len(items)
	return n > 1 && items[n-2] == "%S" && (items[n-1] == "." || items[n-1] == ",")
}

// takeItem cuts off the part of the text that an item of a layout may stand for.
func takeItem(text, item string) (value, rest string, ok bool) {
	if item == " " {
		rest = strings.TrimLeft(text, " ")
		return "", rest, len(rest) < len(text) || text == ""
	}
	if len(item) == 1 {
		rest, ok = strings.CutPrefix(text, item)
		return "", rest, ok
	}
	verb, n := item[1], 0
	most, number := verbDigits[verb]
	switch {
	case number:
		if verb == 'e' {
			text = strings.TrimPrefix(text, " ")
		}
		n = countDigits(text[:min(most, len(text))])
		if fraction := countDigits(text[min(n+1, len(text)):]); verb == 'S' && fraction > 0 && strings.ContainsRune(".,", rune(text[n])) {
			n += 1 + fraction
		}
	case verb == 'z':
		n = offsetLength(text)
	default:
		for n < len(text) && isLetter(text[n]) {
			n++
		}
	}
	return text[:n], text[n:], true
}

// offsetLength is how much of a text %z reads.
func offsetLength(text string) int {
	switch n := len("+01:00"); {
	case strings.HasPrefix(text, "Z"):
		return 1
	case len(text) >= n && text[3] == ':':
		return n
	default:
		return min(n-1, len(text))
	}
}

func countDigits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
