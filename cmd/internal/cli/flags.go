// Package cli reads the command line: words and lists, key=value pairs and inputs, sizes, times and
// files.
package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"obelus/engine/duration"
	"obelus/host"
	"obelus/store"
)

// Bytes is the value of a flag for a number of bytes, written as in settings: "8MB".
type Bytes int64

func (b *Bytes) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type returns the description of the value for errors.
func (b *Bytes) Type() string { return `size: a number of bytes above 0 or text like "8MB"` }

// Set parses the value.
func (b *Bytes) Set(text string) error {
	n, ok := host.ParseSize(text)
	if !ok {
		return errors.New("no size")
	}
	*b = Bytes(n)
	return nil
}

// Duration is the value of a flag for a duration, in seconds or as "1m30s".
type Duration time.Duration

func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type returns the description of the value for errors.
func (d *Duration) Type() string { return "duration" }

// Set parses the value.
func (d *Duration) Set(text string) error {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(seconds) < 1e9 {
		if *d = Duration(seconds * float64(time.Second)); *d == 0 && seconds != 0 {
			return errors.New("too short")
		}
		return nil
	}
	v, err := duration.Parse(text)
	*d = Duration(v)
	return err
}

// Level is the value of a flag for a level of a log; 0 without the flag.
type Level store.LogLevel

func (l *Level) String() string { return store.LogLevel(*l).String() }

// Type returns the description of the value for errors.
func (l *Level) Type() string { return "level: " + strings.Join(store.LogLevels, ", ") }

// Set parses the value.
func (l *Level) Set(text string) error { return (*store.LogLevel)(l).UnmarshalText([]byte(text)) }

// Words is the value of a flag for a list, separated by commas outside of quotes: a path may have
// keys in quotes, and a whole word may stand in quotes. The flag may be given more than once.
type Words []string

func (l *Words) String() string { return strings.Join(*l, ",") }

// Type returns the description of the value for errors.
func (l *Words) Type() string { return "list of words" }

// Set parses words and adds them to the list.
func (l *Words) Set(text string) error {
	var words []string
	begin, inQuotes, escaped := 0, false, false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case inQuotes && r == '\\':
			escaped = true
		case r == '"':
			inQuotes = !inQuotes
		case r == ',' && !inQuotes:
			words, begin = append(words, text[begin:i]), i+1
		}
	}
	for _, word := range append(words, text[begin:]) {
		if strings.HasPrefix(word, `"`) {
			if whole, err := strconv.Unquote(word); err == nil {
				word = whole
			}
		}
		if word == "" {
			return errors.New("a word of the list is empty")
		}
		*l = append(*l, word)
	}
	return nil
}
