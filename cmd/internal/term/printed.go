package term

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"obelus/luastd"
	"obelus/store"
)

// printMark stands before each line that a script prints. No line of the program itself begins with
// it.
const printMark = "| "

// Log shows the records of a command, and the output of the scripts that it runs: a marked line for
// each that they print, and a record for each that they log. In JSON both are records.
type Log struct {
	Logger *slog.Logger

	term  *Terminal
	json  bool
	place func(context, call string) string
	level slog.LevelVar
}

// NewLog returns a log on stderr, of the level info. place returns the name of a call that stands
// before the lines that it prints.
func NewLog(t *Terminal, json bool, place func(context, call string) string) *Log {
	l := &Log{term: t, json: json, place: place}
	options := &slog.HandlerOptions{Level: &l.level}
	l.Logger = slog.New(slog.NewTextHandler(t, options))
	if json {
		l.Logger = slog.New(slog.NewJSONHandler(t, options))
	}
	return l
}

// SetLevel sets the least level that is shown.
func (l *Log) SetLevel(level store.LogLevel) { l.level.Set(levelOf(level)) }

// levelOf returns a level as package slog has it, whose levels are 4 apart.
func levelOf(level store.LogLevel) slog.Level { return slog.Level(4 * (level - store.LevelInfo)) }

// Show shows a line of a script, if its level is high enough.
func (l *Log) Show(line store.LogLine) {
	level := levelOf(line.Level)
	if !l.Logger.Enabled(context.Background(), level) {
		return
	}
	if line.Printed && !l.json {
		mark := printMark
		if line.Call != "" {
			mark += l.place(line.Context, line.Call) + " "
		}
		l.term.Print(mark + line.Text)
		return
	}
	message, attrs := line.Text, []slog.Attr{}
	if line.Printed {
		message, attrs = "print", append(attrs, slog.String("text", line.Text))
	}
	for _, name := range slices.Sorted(maps.Keys(line.Fields)) {
		attrs = append(attrs, slog.Any(name, luastd.Logged(line.Fields[name])))
	}
	if line.Call != "" { // after the fields, which may have the same names
		attrs = append(attrs, slog.String("context", line.Context), slog.String("call", line.Call), slog.String("tool", line.Tool), slog.Int("attempt", line.Attempt))
	}
	l.Logger.LogAttrs(context.Background(), level, message, attrs...)
}
