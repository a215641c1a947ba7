package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"

	"obelus/store"
)

// Logs implements [store.Log].
func (l *Log) Logs(ctx context.Context, f store.LogFilter) iter.Seq2[store.LogLine, error] {
	return sequence(l, ctx, func(c *conn, yield func(store.LogLine) bool) error {
		return c.overSpans(ctx, f.Context, f.Newest, func(s span) (more bool, err error) {
			more = true
			sql, values := selectLogs(f, s)
			err = c.each(ctx, sql, values, func(row []driver.Value) (bool, error) {
				line, err := logLine(row)
				if err == nil {
					line.Context = f.Context
					more = yield(line)
				}
				return more, err
			})
			return more, err
		})
	})
}

func selectLogs(f store.LogFilter, s span) (sql string, values []driver.Value) {
	var w conditions
	w.add("context = ?", s.context)
	position := "n" // by logs_context
	order := position
	if f.Call != "" {
		w.add("call = ?", f.Call)
		position, order = "+n", "line" // in the same order, by logs_call
	}
	if f.After > 0 {
		w.add(position+" > ?", f.After)
	}
	if f.Level > store.LevelDebug {
		levels := ""
		for _, name := range store.LogLevels[f.Level-1:] {
			levels += ",'" + name + "'"
		}
		w.add("level IN (" + levels[1:] + ")")
	}
	if s.context != f.Context {
		w.add("date <= (SELECT date FROM journal WHERE n = ?)", s.n)
	}
	return "SELECT n, call, line, tool, attempt, date, level, printed, text, fields FROM logs" + w.String() + " ORDER BY " + order + direction(f.Newest), w.values
}

func logLine(row []driver.Value) (l store.LogLine, err error) {
	l = store.LogLine{
		N: integer(row[0]), Call: text(row[1]), Line: integer(row[2]), Tool: text(row[3]), Attempt: int(integer(row[4])),
		Printed: integer(row[7]) != 0, Text: text(row[8]),
	}
	if l.Date, err = date(row[5]); err == nil && text(row[9]) != "" {
		var fields any
		fields, err = store.DecodeJSON([]byte(text(row[9])))
		l.Fields, _ = fields.(map[string]any)
	}
	var known bool
	if l.Level, known = store.ParseLogLevel(text(row[6])); !known {
		err = fmt.Errorf("its level is %q", text(row[6]))
	}
	if err != nil {
		err = &problem{ErrDamaged, fmt.Sprintf("is damaged: line %d of the logs: %v", l.N, err)}
	}
	return l, err
}
