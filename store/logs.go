package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// LogLine is a line that a script printed or logged while a call ran. Lines are kept beside the
// messages and the journal, and are no part of a context: a crash may lose the last ones.
type LogLine struct {
	N       int64 // its position among the lines of all contexts, growing
	Context string
	Call    string // "1.2"
	Line    int64  // its number in the call, from 1; a gap is of lines that were dropped
	Tool    string
	Attempt int
	Date    time.Time
	Level   LogLevel
	Printed bool // by print or io.write; its level is LevelInfo

	// Text is one line where it was printed, and a message of any number of lines where it was logged.
	Text   string
	Fields map[string]any // JSON values that were logged with it

	// Dropped is the number of lines of the call that came just before it and are left out. It is
	// for [Batch].Logs: they have numbers too.
	Dropped int64
}

// Size is the number of bytes for which the line counts where the lines of a call are bounded.
func (l *LogLine) Size() int64 {
	size := int64(len(l.Text)) + logLineSize
	if len(l.Fields) > 0 {
		size += int64(len(EncodeJSON(l.Fields)))
	}
	return size
}

// logLineSize is the size of a line without text.
const logLineSize = 64

// MarshalJSON implements [json.Marshaler].
func (l LogLine) MarshalJSON() ([]byte, error) {
	return EncodeJSON(struct {
		N       int64          `json:"n"`
		Context string         `json:"context"`
		Call    string         `json:"call"`
		Line    int64          `json:"line"`
		Tool    string         `json:"tool"`
		Attempt int            `json:"attempt"`
		Date    string         `json:"date"`
		Level   LogLevel       `json:"level"`
		Printed bool           `json:"printed,omitempty"`
		Text    string         `json:"text"`
		Fields  map[string]any `json:"fields,omitempty"`
	}{l.N, l.Context, l.Call, l.Line, l.Tool, l.Attempt, FormatDate(l.Date), l.Level, l.Printed, l.Text, l.Fields}), nil
}

// LogLevel is how important a line is; 0 is no level, and less than all.
type LogLevel int

// The levels, the least important first.
const (
	LevelDebug LogLevel = iota + 1
	LevelInfo
	LevelWarn
	LevelError
)

// LogLevels are the names of the levels, in their order.
var LogLevels = []string{"debug", "info", "warn", "error"}

// ParseLogLevel returns the level of a name.
func ParseLogLevel(name string) (level LogLevel, ok bool) {
	i := slices.Index(LogLevels, strings.ToLower(name))
	return LogLevel(i + 1), i >= 0
}

func (l LogLevel) String() string {
	if l < LevelDebug || l > LevelError {
		return ""
	}
	return LogLevels[l-1]
}

// MarshalText implements [encoding.TextMarshaler].
func (l LogLevel) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *LogLevel) UnmarshalText(text []byte) error {
	level, ok := ParseLogLevel(string(text))
	if *l = level; !ok {
		return fmt.Errorf("%q is no level: it is %s", text, strings.Join(LogLevels, ", "))
	}
	return nil
}

// LogFilter picks lines. Its zero fields pick all.
type LogFilter struct {
	Context string // must be set
	Call    string
	After   int64 // only lines after this position
	Level   LogLevel
	Newest  bool // newest first
}

// Picks reports whether a line is of the filter's call, level and positions. It does not look at
// the context.
func (f *LogFilter) Picks(l *LogLine) bool {
	return l.N > f.After && l.Level >= f.Level && (f.Call == "" || l.Call == f.Call)
}

// KeepLogs returns how many of the oldest lines of one call must go, so that the rest has at most
// keep bytes. The newest line always stays.
func KeepLogs(lines []*LogLine, keep int64) (drop int) {
	total := int64(0)
	for i, line := range slices.Backward(lines) {
		if total += line.Size(); total > keep && i < len(lines)-1 {
			return i + 1
		}
	}
	return 0
}
