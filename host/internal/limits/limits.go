// Package limits has the bounds on scripts that a project can set, with their defaults, and the
// text of errors that name them.
package limits

import (
	"fmt"
	"strconv"
)

// SettingsFile marks a project and returns its settings.
const SettingsFile = "obelus.lua"

// Limits bounds the means of scripts, beside the timeout. A zero stands for the default. Some
// bounds cannot be set: a script is nested at most 200 deep and a pattern recurses as deep, since
// more would endanger the host's own stack; calls are nested at most 2,000 deep, tail calls among
// them; an array has at most a million elements, as the interpreter wants it.
type Limits struct {
	Depth int // depth of tables in a value that a script returns; 0 for 128, at most 200
	// Instructions of one call, native work counted by its size; 0 for 10,000,000,000.
	Instructions int
	Memory       int // bytes by which the process grows while one call runs; 0 for 512 MiB
	Pattern      int // bytes of one of Lua's patterns; 0 for 64 KiB
	// Bytes that the process holds before calls wait for others to end, see host.KeepHeap; 0 for 1
	// GiB.
	Process int
	Result  int // bytes of the result of an activity or a planner; 0 for 16 MiB
	Source  int // bytes of one script; 0 for 256 KiB
	String  int // bytes of one string; 0 for 16 MiB
}

// MaxDepth is the default depth of tables in a value.
const MaxDepth = 128

// MaxArray is the number of elements at which the interpreter no longer keeps a table as an array:
// beyond it, t[67108863] = 1 would fill four gigabytes with nil.
const MaxArray = 1 << 20

// Defaults has the value for each zero of [Limits].
var Defaults = Limits{Depth: MaxDepth, Pattern: 64 << 10, Instructions: 10_000_000_000, Memory: 512 << 20, Process: 1 << 30, Result: 16 << 20, Source: 256 << 10, String: 16 << 20}

// WithDefaults returns l with its zeros filled in.
func WithDefaults(l Limits) Limits {
	for _, f := range Fields {
		if *f.Of(&l) == 0 {
			*f.Of(&l) = *f.Of(&Defaults)
		}
	}
	return l
}

// Fields are the limits by name, in sorted order.
var Fields = []struct {
	Name string
	Of   func(l *Limits) *int
}{
	{"depth", func(l *Limits) *int { return &l.Depth }},
	{"instructions", func(l *Limits) *int { return &l.Instructions }},
	{"memory", func(l *Limits) *int { return &l.Memory }},
	{"pattern", func(l *Limits) *int { return &l.Pattern }},
	{"process", func(l *Limits) *int { return &l.Process }},
	{"result", func(l *Limits) *int { return &l.Result }},
	{"source", func(l *Limits) *int { return &l.Source }},
	{"string", func(l *Limits) *int { return &l.String }},
}

// Over returns the text of an error for a limit that is exceeded. It names the limit and says how
// it is raised.
func Over(what, name string, allowed int) string {
	return fmt.Sprintf("%s: limits.%s in %s allows %s", what, name, SettingsFile, FormatSize(name, allowed))
}

// FormatSize writes the value of a limit as a setting has it.
func FormatSize(name string, n int) string {
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

// OutOfTime is the error that a script sees once its time is over, if it looks.
const OutOfTime = "out of time"
