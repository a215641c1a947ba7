package host

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"obelus/engine/plan"
	"obelus/luastd"
	"obelus/store"
)

// output passes on what scripts print and log: to the program, and of a call also to what keeps its
// lines. It is the writer and the handler of the modules of a session.
type output struct {
	config *Config
	call   plan.Invocation // that runs; zero while none does
}

// Write passes on a script's output: whole lines, or the end of one that is not ended.
func (o *output) Write(text []byte) (int, error) {
	if o.config.Show != nil || o.call.Logs != nil {
		for line := range linesOf(string(text)) {
			o.pass(store.LogLine{Level: store.LevelInfo, Printed: true, Text: line})
		}
	}
	if o.config.Show == nil {
		_, _ = o.config.Stderr.Write(text) // as print itself ignores errors
	}
	return len(text), nil
}

// linesOf returns the lines of a text. A carriage return ends a line too, since a terminal shows
// the text after it at the beginning of the line.
func linesOf(text string) func(yield func(line string) bool) {
	plain := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.SplitSeq(strings.TrimSuffix(plain, "\n"), "\n")
}

// Enabled implements [slog.Handler].
func (o *output) Enabled(ctx context.Context, level slog.Level) bool {
	return o.config.Show != nil || o.call.Logs != nil || o.config.Log.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler]: the module log has no attributes of its own.
func (o *output) WithAttrs([]slog.Attr) slog.Handler { return o }

// WithGroup implements [slog.Handler].
func (o *output) WithGroup(string) slog.Handler { return o }

// Handle passes on a record that a script logged.
func (o *output) Handle(ctx context.Context, record slog.Record) error {
	if o.config.Show != nil || o.call.Logs != nil {
		line := store.LogLine{Level: levelOf(record.Level), Text: record.Message}
		if record.NumAttrs() > 0 {
			line.Fields = map[string]any{}
		}
		record.Attrs(func(a slog.Attr) bool {
			line.Fields[a.Key] = luastd.Unlogged(a.Value.Any())
			return true
		})
		o.pass(line)
	}
	if log := o.config.Log; o.config.Show == nil && log.Enabled(ctx, record.Level) {
		return log.Handler().Handle(ctx, record)
	}
	return nil
}

func levelOf(level slog.Level) store.LogLevel {
	switch {
	case level < slog.LevelInfo:
		return store.LevelDebug
	case level < slog.LevelWarn:
		return store.LevelInfo
	case level < slog.LevelError:
		return store.LevelWarn
	}
	return store.LevelError
}

// pass completes a line with its call, has it kept, and shows it.
func (o *output) pass(line store.LogLine) {
	line.Date = time.Now()
	if o.call.Key != "" {
		line.Context, line.Call = o.call.Place()
		line.Tool, _ = o.call.Call["_tool"].(string)
		line.Attempt = o.call.Before + o.call.Attempt
	}
	if o.call.Logs != nil {
		o.call.Logs.Keep(line)
	}
	if o.config.Show != nil {
		o.config.Show(line)
	}
}

var (
	_ io.Writer    = (*output)(nil)
	_ slog.Handler = (*output)(nil)
)
