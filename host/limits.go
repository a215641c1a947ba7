package host

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Limits bounds what scripts use, beside the timeout. A zero stands for the
// default. What is not here can't be set: how deep a script is nested (200), and
// the recursion of a pattern (200), for more would endanger the host's own stack;
// how deep calls are nested (2,000, tail calls among them); and how many elements an
// array has (a million), which is the interpreter's.
type Limits struct {
	Depth        int // of tables in tables that a script gives back; 0 for 128, at most 200
	Instructions int // that one call runs, native work counted by its size; 0 for 10,000,000,000
	Memory       int // bytes by which the process grows while one call runs; 0 for 512 MiB
	Pattern      int // bytes of one of Lua's patterns; 0 for 64 KiB
	Process      int // bytes that the process holds before calls wait for others to end, see [KeepHeap]; 0 for 1 GiB
	Result       int // bytes of what an activity or a planner gives back; 0 for 16 MiB
	Source       int // bytes of one script; 0 for 256 KiB
	String       int // bytes of one string; 0 for 16 MiB
}

// maxSource is how long a script is by default.
const maxSource = 256 << 10

// defaultLimits are what the zeros of [Limits] stand for.
var defaultLimits = Limits{Depth: maxDepth, Pattern: 64 << 10, Instructions: 10_000_000_000, Memory: 512 << 20, Process: 1 << 30, Result: 16 << 20, Source: maxSource, String: 16 << 20}

// withDefaults fills in the zeros.
func (l Limits) withDefaults() Limits {
	for _, f := range limitFields {
		if *f.of(&l) == 0 {
			*f.of(&l) = *f.of(&defaultLimits)
		}
	}
	return l
}

// limitFields are the limits by name, in sorted order.
var limitFields = []struct {
	name string
	of   func(l *Limits) *int
	read func(v any) (int, error)
}{
	{"depth", func(l *Limits) *int { return &l.Depth }, asDepth},
	{"instructions", func(l *Limits) *int { return &l.Instructions }, asPositive},
	{"memory", func(l *Limits) *int { return &l.Memory }, asSize},
	{"pattern", func(l *Limits) *int { return &l.Pattern }, asSize},
	{"process", func(l *Limits) *int { return &l.Process }, asSize},
	{"result", func(l *Limits) *int { return &l.Result }, asSize},
	{"source", func(l *Limits) *int { return &l.Source }, asSize},
	{"string", func(l *Limits) *int { return &l.String }, asSize},
}

func readLimits(s *Settings, v any) error {
	var names []string
	for _, f := range limitFields {
		names = append(names, f.name)
	}
	return readTable(v, "limits", names, func(name string) string { return "limit " + strconv.Quote(name) }, func(i int, v any) error {
		n, err := limitFields[i].read(v)
		if err == nil {
			*limitFields[i].of(&s.Limits) = n
		}
		return err
	})
}

var sizeText = regexp.MustCompile(`^(\d+)\s*([KMG]?)i?B?$`)

// asDepth is a depth that a log can hold, with what a message adds to it.
func asDepth(v any) (int, error) {
	n, err := asPositive(v)
	if err == nil && n > 200 {
		err = wrongType("at most 200", v)
	}
	return n, err
}

// asSize is a number of bytes, or text like "64MB": a K is 1024.
func asSize(v any) (int, error) {
	if text, ok := v.(string); ok {
		if n, ok := ParseSize(text); ok {
			return n, nil
		}
	}
	if n, ok := v.(json.Number); ok {
		if i, err := strconv.Atoi(string(n)); err == nil && i > 0 {
			return i, nil
		}
	}
	return 0, wrongType(`a size: a number of bytes or text like "64MB"`, v)
}

// ParseSize reads a number of bytes as the settings have it: "64MB", "500 KB", "100".
// It is false for what is no such text, and for 0.
func ParseSize(text string) (n int, ok bool) {
	m := sizeText.FindStringSubmatch(strings.ToUpper(strings.ReplaceAll(text, "i", "")))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	factor := map[string]int{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[m[2]]
	return n * factor, err == nil && n > 0 && n < 1<<40/factor
}

// over says which limit something is over, and how it is raised.
func over(what, name string, allowed int) string {
	return fmt.Sprintf("%s: limits.%s in %s allows %s", what, name, SettingsFile, sizeName(name, allowed))
}

func sizeName(name string, n int) string {
	if name == "instructions" || name == "depth" {
		return strconv.Itoa(n)
	}
	for _, unit := range []struct {
		size int
		name string
	}{{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return strconv.Itoa(n/unit.size) + " " + unit.name
		}
	}
	return strconv.Itoa(n) + " bytes"
}
