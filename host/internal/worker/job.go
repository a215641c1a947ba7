package worker

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/luastd"
	"obelus/store"
)

// setUp is the first message to a worker: the parts of the project that activities need.
type setUp struct {
	Dir     string
	Grants  luastd.Grants
	Limits  limits.Limits
	Scripts map[string]string              // files that may be required; compiled on first use
	Broken  map[string]*luaerr.ScriptError // files that can't be read
}

// job is one call for a worker.
type job struct {
	file, sha256 string
	source       any // of the file; nil if the worker has it already
	name         string
	timeout      time.Duration
	in           plan.Invocation
}

// script identifies the script: two files may have the same text.
func (j *job) script() string { return j.file + "\x00" + j.sha256 }

func (j *job) value() any {
	return []any{
		j.file, j.sha256, j.source, j.name, int64(j.timeout),
		j.in.Call, j.in.Context, j.in.Tool, j.in.Key, j.in.Attempt,
	}
}

func readJob(v any) *job {
	list := v.([]any)
	j := &job{file: list[0].(string), sha256: list[1].(string), source: list[2], name: list[3].(string), timeout: time.Duration(toInt64(list[4]))}
	j.in.Call, _ = list[5].(map[string]any)
	j.in.Context, _ = list[6].(map[string]any)
	j.in.Tool, j.in.Key, j.in.Attempt = list[7], list[8].(string), int(toInt64(list[9]))
	return j
}

func toInt64(v any) int64 {
	n, _ := v.(json.Number).Int64()
	return n
}

// done is the outcome of a job. One of its fields is set.
type done struct {
	result  plan.Result
	failure map[string]any
	fault   *luaerr.ScriptError
}

func (d *done) value() any {
	switch {
	case d.failure != nil:
		return map[string]any{"failure": d.failure}
	case d.fault != nil:
		return map[string]any{"fault": string(store.EncodeJSON(d.fault))}
	case d.result.Message != nil:
		return map[string]any{"message": d.result.Message}
	}
	return map[string]any{"value": d.result.Value, "to": d.result.To}
}

func readDone(v any) (d done, err error) {
	is, ok := v.(map[string]any)
	if !ok {
		return d, errWire
	}
	d.failure, _ = is["failure"].(map[string]any)
	d.result.Message, _ = is["message"].(map[string]any)
	d.result.Value = is["value"]
	d.result.To, _ = is["to"].(string)
	if fault, ok := is["fault"].(string); ok {
		err = json.Unmarshal([]byte(fault), &d.fault)
	}
	return d, err
}

func (d *done) outcome() (plan.Result, error) {
	switch {
	case d.failure != nil:
		return plan.Result{}, &plan.Failure{Fields: d.failure, Loose: true}
	case d.fault != nil:
		return plan.Result{}, d.fault
	}
	d.result.Loose = true
	return d.result, nil
}

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

// logRecord logs a record that a recorder has sent.
func logRecord(log *slog.Logger, list []any) {
	var attrs []slog.Attr
	for i := 2; i+1 < len(list); i += 2 {
		attrs = append(attrs, slog.Any(list[i].(string), luastd.Logged(list[i+1])))
	}
	log.LogAttrs(context.Background(), slog.Level(toInt64(list[0])), list[1].(string), attrs...)
}
