package limits

import (
	"fmt"
	"strconv"
)

// SettingsFile marks a project and returns its settings.
const SettingsFile = "obelus.lua"

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

// MaxDepth is how deep tables in a value may be nested by default.
const MaxDepth = 128

// MaxArray is how many elements a table has before it stops being an array for the interpreter:
// beyond it, t[67108863] = 1 would fill four gigabytes with nil.
const MaxArray = 1 << 20

// Defaults are what the zeros of [Limits] stand for.
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

// Over says which limit something is over, and how it is raised.
func Over(what, name string, allowed int) string {
	return fmt.Sprintf("%s: limits.%s in %s allows %s", what, name, SettingsFile, FormatSize(name, allowed))
}

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

// OutOfTime is what a script reads that looks at the error of its deadline.
const OutOfTime = "out of time"
