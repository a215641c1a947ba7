package worker

import (
	"context"
	"io"
	"log/slog"

	"obelus/luastd"
)

// printer sends the output of scripts, as strings before the outcome of the job: it must not be
// mistaken for the runtime's last messages on stderr.
type printer struct{ out io.Writer }

func (p printer) Write(text []byte) (int, error) {
	return len(text), send(p.out, string(text))
}

// recorder sends the log records of scripts, as lists before the outcome of the job: the level, the
// message, then names and values alternately.
type recorder struct{ out io.Writer }

func (r recorder) Enabled(context.Context, slog.Level) bool { return true }

func (r recorder) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r recorder) WithGroup(string) slog.Handler { return r }

func (r recorder) Handle(_ context.Context, record slog.Record) error {
	list := []any{int(record.Level), record.Message}
	record.Attrs(func(a slog.Attr) bool {
		list = append(list, a.Key, luastd.Unlogged(a.Value.Any()))
		return true
	})
	return send(r.out, list)
}

// logRecorded logs a record that a recorder has sent.
func logRecorded(log *slog.Logger, list []any) {
	var attrs []slog.Attr
	for i := 2; i+1 < len(list); i += 2 {
		attrs = append(attrs, slog.Any(list[i].(string), luastd.Logged(list[i+1])))
	}
	log.LogAttrs(context.Background(), slog.Level(whole(list[0])), list[1].(string), attrs...)
}
