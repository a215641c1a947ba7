// Package limits has the bounds on scripts that a project can set, with their defaults, and the
// text of errors that name them.
package limits

import (
	"fmt"
	"reflect"
	"strconv"
)

// SettingsFile marks a project and returns its settings.
const SettingsFile = "obelus.lua"

// Limits bounds the means of scripts, beside the timeout. A zero stands for the default. Some
// bounds cannot be set: a script is nested at most 200 deep and a pattern recurses as deep, since
// more would endanger the host's own stack; calls are nested at most 2,000 deep, tail calls among
// them; an array has at most a million elements, as the interpreter wants it. Sizes are in bytes.
type Limits struct {
	Depth        int `json:"depth" kind:"depth" jsonschema:"of tables within tables that a script gives back (default 128)"`
	Instructions int `json:"instructions" jsonschema:"that one call runs (default 10000000000)"`
	Memory       int `json:"memory" kind:"size" jsonschema:"by which the process grows as one call runs (default \"512MB\")"`
	Pattern      int `json:"pattern" kind:"size" jsonschema:"size of one of Lua's patterns (default \"64KB\")"`
	// Process is looked at before a call, see host.KeepHeap.
	Process int `json:"process" kind:"size" jsonschema:"memory that the process holds before further calls wait until others have ended and the log has what they gave (default \"1GB\")"`
	Result  int `json:"result" kind:"size" jsonschema:"JSON of what an activity or a planner gives back (default \"16MB\")"`
	Source  int `json:"source" kind:"size" jsonschema:"size of one script (default \"256KB\")"`
	String  int `json:"string" kind:"size" jsonschema:"size of one string (default \"16MB\")"`
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
	defaults := reflect.ValueOf(Defaults)
	for i, limit := range reflect.ValueOf(&l).Elem().Fields() {
		if limit.IsZero() {
			limit.Set(defaults.FieldByIndex(i.Index))
		}
	}
	return l
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
