// Package duration reads durations as plans, settings and flags have them: a number of seconds, or
// text such as "5s", "1h30m", "3d" or "2w".
package duration

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Day and Week are the units that package time does not have.
const (
	Day  = 24 * time.Hour
	Week = 7 * Day
)

// Parse reads a text as [time.ParseDuration] does, with d for days of 24 hours and w for weeks.
func Parse(text string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(text, "-")
	if rest == "" || rest == "0" && negative {
		return 0, noDuration(text)
	}
	if !strings.ContainsAny(rest, "dw") { // the usual case
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
	}
	total := 0.0
	var sum time.Duration
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		letters := len(rest[digits:]) - len(strings.TrimLeft(rest[digits:], "abcdefghijklmnopqrstuvwxyzµμ"))
		d, err := part(rest[:digits], rest[digits:digits+letters])
		switch {
		case err == errTooLong:
			total = math.MaxInt64
		case err != nil || digits == 0 || letters == 0:
			return 0, noDuration(text)
		}
		total += float64(d)
		sum, rest = sum+d, rest[digits+letters:]
	}
	switch {
	case total >= math.MaxInt64:
		return 0, fmt.Errorf("%q is too long: at most %dd", text, math.MaxInt64/Day)
	case negative:
		sum = -sum
	}
	return sum, nil
}

var errTooLong = errors.New("too long")

// part reads a number with a unit.
func part(number, unit string) (time.Duration, error) {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, err
	}
	of := map[string]time.Duration{"d": Day, "w": Week}[unit]
	if of == 0 {
		if of, err = time.ParseDuration("1" + unit); err != nil {
			return 0, err
		}
		if d, err := time.ParseDuration(number + unit); err == nil {
			return d, nil
		}
	}
	if f*float64(of) >= math.MaxInt64 {
		return 0, errTooLong
	}
	return time.Duration(f * float64(of)), nil
}

func noDuration(text string) error {
	return fmt.Errorf(`%q is no duration: expected seconds, or text such as "5s", "1h30m" or "3d"`, text)
}

// Read reads a value of JSON: a number of seconds or a text, not negative.
func Read(v any) (time.Duration, error) {
	switch v := v.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if err == nil && f >= 0 && f < 1e9 {
			return time.Duration(f * float64(time.Second)), nil
		}
		return 0, fmt.Errorf("%s is no duration: expected seconds, from 0 to a billion", v)
	case string:
		d, err := Parse(v)
		if err == nil && d < 0 {
			err = fmt.Errorf("%q is negative", v)
		}
		return d, err
	}
	return 0, errors.New(`expected a duration: a number of seconds or text such as "5s" or "3d"`)
}
